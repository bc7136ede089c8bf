# The door handle: short names for what CMake and the scripts do.  `make` builds, `make help` lists.
PRESET ?= release
PREFIX ?= /usr/local

.PHONY: all help check test dev asan tsan clang fuzz cover install demo format symbols manual package clean

all: ## build (PRESET=release)
	@cmake --preset $(PRESET) --log-level=WARNING
	@cmake --build --preset $(PRESET)

help: ## this list
	@sed -n 's/^\([a-z ]*\):.* ## /\1: /p' Makefile

check: all ## build, then run that build's tests
	@ctest --preset $(PRESET) -j2

test: ## everything, as CI does (installs what is missing)
	@./scripts/test.sh

dev asan tsan clang fuzz cover: ## configure, build and test one preset
	@cmake --workflow --preset $@

install: all ## install under PREFIX (default /usr/local)
	@cmake --install build/$(PRESET) --prefix $(PREFIX)

demo: all ## show the main job
	@./build/$(PRESET)/bin/cortex demo

format: ## lay our C files out (clang-format 14)
	@./tools/check_format.py --fix

symbols: all ## accept the exported symbols as they are now
	@./tools/check_symbols.sh --update build/$(PRESET)/libcortex.so

manual: all ## put the commands as they are now into docs/man/cortex.1
	@./tools/make_man.py --update build/$(PRESET)/bin/cortex

package: ## the .deb set, in build/package
	@./scripts/package.sh

clean: ## remove all builds
	@rm -rf build
