# What runs as a test besides the test programs.  Labels: unit, threads, cli, differential, check,
# install, torture, attack, sdk, web, artefact, governed and nodes (not again under the sanitizers), external (needs packages of
# npm), patroni (PostgreSQL under Patroni: minutes, and only with CORTEX_PATRONI_ROUNDS), slow (not in
# `scripts/test.sh --quick`); `ctest -L cli` runs one kind, `ctest -LE check` leaves one out.
#
#   cli/test_*.sh, .py   the program from outside; $CORTEX_BIN says where it is
#   http/test_*.py       the same of its server
#   diff/NAME_diff.py    our answers compared with an independent implementation's; its first argument is
#                        the program built from NAME_diff.c, or cortex when there is no such file
#
# Each such script closes with `N passed, N failed, N skipped`, or counts as one test; exit code 77
# means skipped.  Both run under the sanitizers too.

find_package(Python3 COMPONENTS Interpreter)

# The programs whose tests start threads; ThreadSanitizer runs these.
add_custom_target(threaded_tests)
foreach(program test_base test_os test_crypto test_db test_log test_ledger test_socket test_proof test_lattice test_memory
    test_git test_sandbox test_bundle test_approval test_agent test_candidate test_audit test_governor test_server
    test_home_threads)
  if(TARGET ${program})
    set_property(TEST ${program} APPEND PROPERTY LABELS threads)
    add_dependencies(threaded_tests ${program})
  endif()
endforeach()

add_dependencies(threaded_tests cortex) # some put programs into sandboxes

foreach(module ${CX_UNIT_MODULES})
  if(TARGET test_${module})
    set_property(TEST test_${module} APPEND PROPERTY LABELS unit)
  endif()
endforeach()

# Where there is a PostgreSQL, these share it, and one of them stops it now and then.
foreach(program test_db test_fleet test_index)
  if(TARGET ${program})
    set_property(TEST ${program} PROPERTY RESOURCE_LOCK postgresql)
  endif()
endforeach()

# What makes thousands of small files and worktrees, of which nothing has to outlive a machine: half of its time on a
# disk is the file system's.  These have their files in memory, where test.sh has put a folder; all others on the disk.
set(makes_files "^(example_govern|vectors_got|hostile|\
cli_(run.*|attack|builtin_agents|canary|exec|intent|split|story|hostile_text|fleet_bundles|agent_sessions))$")

# cx_script(NAME LABEL COMMAND...)
function(cx_script name label)
  set(through)
  if(name MATCHES "${makes_files}")
    set(through ${CMAKE_CURRENT_SOURCE_DIR}/support/in_memory.sh)
  endif()
  add_test(NAME ${name} COMMAND ${through} ${ARGN} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77
    ENVIRONMENT "CORTEX_BIN=$<TARGET_FILE:cortex>;CX_TEST_ROOT=${CMAKE_CURRENT_SOURCE_DIR};CX_SANITIZE=${CORTEX_SANITIZE}")
endfunction()

cx_script(example_ledger cli ${PROJECT_SOURCE_DIR}/examples/ledger.sh ${CMAKE_BINARY_DIR}/bin)
cx_script(example_traces cli ${PROJECT_SOURCE_DIR}/examples/traces.sh ${CMAKE_BINARY_DIR}/bin)
cx_script(example_govern cli ${PROJECT_SOURCE_DIR}/examples/govern.sh ${CMAKE_BINARY_DIR}/bin)

file(GLOB scripts CONFIGURE_DEPENDS cli/test_*.sh cli/test_*.py http/test_*.py)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  string(REGEX REPLACE "^test_" "cli_" name ${name})
  cx_script(${name} cli ${script})
endforeach()

# Scripts, packages and images around the programs, servers that are killed while they archive (test_log does
# the same with every call failing), and programs that are killed while they make the tables of old data
# directories (test_fault does it with new ones), and every command with the same hostile texts (each command has
# tests of its own that run there), lines of shells that are run by shells, pages of the manual, screens that wait,
# and programs around modules whose unit tests run there whole (live, gateway, alerts, backup, evidence, object stores,
# whose libcurl with TLS makes LeakSanitizer itself fail now and then): not again
# under the sanitizers but by `ctest --preset asan -L artefact`, before a release.
foreach(name cli_agent_sessions cli_alerts cli_answers cli_backup cli_evidence cli_hook_install cli_live_audit
    cli_live_evasion cli_mcp_gateway cli_object_store)
  set_property(TEST ${name} APPEND PROPERTY LABELS artefact)
endforeach()
foreach(name cli_ci cli_deploy cli_hostile_text cli_image cli_install cli_live_shell cli_log_archive cli_manual
    cli_packages cli_up cli_upgrade cli_watch cli_watch_agents)
  set_property(TEST ${name} APPEND PROPERTY LABELS artefact)
endforeach()

# Whole governed runs: most of their time is git's and that of the programs they start, hundreds of each.  Under
# the sanitizers the modules below them run by their unit tests and vectors; these, by `ctest --preset asan -L
# governed`, before a release.
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  string(REGEX REPLACE "^test_" "cli_" name ${name})
  if(name MATCHES "^cli_(run.*|attack|builtin_agents|canary|exec|intent|split|story)$")
    set_property(TEST ${name} APPEND PROPERTY LABELS governed)
  endif()
endforeach()
set_property(TEST example_govern APPEND PROPERTY LABELS governed)

# Nodes of a fleet: most of their time is waiting for leases and a PostgreSQL.  Likewise, `-L nodes`; what they
# are made of runs there as test_fleet, fleet_faults, test_socket and test_os.
foreach(name cli_fleet cli_fleet_balance cli_fleet_bounds cli_fleet_serve cli_fleet_writes cli_fleet_checkpoint
    cli_fleet_locks cli_fleet_bundles cli_fleet_objects cli_fleet_tenants)
  set_property(TEST ${name} APPEND PROPERTY LABELS nodes)
endforeach()

# The exporters of the OpenTelemetry SDK, from npm; skipped where they cannot be had.
cx_script(otlp_exporters external ${CMAKE_CURRENT_SOURCE_DIR}/otlp/test_exporters.py)
# A coding agent that people use, from npm (scripts/fetch-agents.sh); skipped without CORTEX_AGENTS.
cx_script(agents_codex external ${CMAKE_CURRENT_SOURCE_DIR}/agents/test_codex.py)
# Three of them with their hooks, from npm (scripts/test-live.sh); the quick cases, skipped without CORTEX_AGENTS.
cx_script(live_agents external ${CMAKE_CURRENT_SOURCE_DIR}/live/test_agents.py)
# Hooks, a server and agents killed at random instants; CORTEX_LIVE_KILLS is how often.
cx_script(live_kills torture ${CMAKE_CURRENT_SOURCE_DIR}/live/kills.py)

if(TEST cli_attack)
  set_tests_properties(cli_attack PROPERTIES PROCESSORS 2) # starts several runs at once
endif()

# Everything at once, with kills, full disks and jumping clocks (docs/reliability.md has longer runs): so long
# that everything stops twice to be looked at.  A library put before a program cannot come before a
# sanitizer's own.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CORTEX_SANITIZE)
  add_library(fault_injector MODULE torture/fault_injector.c)
  set_target_properties(fault_injector PROPERTIES PREFIX "" C_STANDARD 17 C_EXTENSIONS ON
    C_VISIBILITY_PRESET default
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  target_compile_options(fault_injector PRIVATE -Wall -Wextra -Wconversion -Werror)
  target_link_libraries(fault_injector PRIVATE ${CMAKE_DL_LIBS})
  cx_script(fault_injector torture torture/test_fault_injector.py)
  cx_script(torture torture torture/torture.py --seconds 65)
  set_tests_properties(torture PROPERTIES COST 1000)
  cx_script(soak torture soak/soak.py --seconds 15)
  # Nodes of a fleet over a PostgreSQL of their own; CORTEX_FLEET_SECONDS makes it long.
  cx_script(fleet_faults torture ${CMAKE_CURRENT_SOURCE_DIR}/fleet/faults.py $<TARGET_FILE:cortex-fleet-driver>)
  # The same under Patroni, with etcd and HAProxy: minutes for each of CORTEX_PATRONI_ROUNDS, and skipped without it.
  cx_script(fleet_patroni patroni ${CMAKE_CURRENT_SOURCE_DIR}/fleet/patroni_faults.py)
  set_tests_properties(fleet_patroni PROPERTIES TIMEOUT 7200)
endif()

# A hostile agent put together at random, for 40 seconds; docs/threat-model.md has longer ones.
if(Python3_FOUND AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CORTEX_SANITIZE)
  cx_script(hostile_selftest attack ${Python3_EXECUTABLE} attack/hostile.py --selftest)
  cx_script(hostile attack ${Python3_EXECUTABLE} attack/hostile.py --seconds 40 --seed 17)
  set_tests_properties(hostile PROPERTIES PROCESSORS 2 COST 500)
endif()

file(GLOB scripts CONFIGURE_DEPENDS diff/*_diff.py)
if(NOT Python3_FOUND)
  set(scripts "")
endif()
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  set(program cortex)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/diff/${name}.c)
    set(program ${name})
    add_executable(${name} diff/${name}.c)
    target_link_libraries(${name} PRIVATE cx_flags cortex_static)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  endif()
  cx_script(${name} differential ${Python3_EXECUTABLE} ${script} $<TARGET_FILE:${program}>)
endforeach()

# What takes longest, with or without sanitizers, begins first: at the end it would run alone.  Higher numbers
# begin before lower ones, and all others follow in their order.
set_tests_properties(cli_attack PROPERTIES COST 400)
set_tests_properties(cli_hostile_text test_fault cli_upgrade cli_ledger PROPERTIES COST 200)
set_tests_properties(cli_run_reports cli_split test_property vectors_attack cli_traces cli_http cli_alerts
  cli_live cli_run_approvals test_index test_pages cli_exec cli_log_archive cli_packages cli_ci PROPERTIES COST 100)
if(TEST fleet_faults)
  set_tests_properties(fleet_faults PROPERTIES COST 150)
endif()

# What does not depend on how the code was built is checked once, not again under each sanitizer.
if(CORTEX_SANITIZE OR CORTEX_STATIC OR CMAKE_C_FLAGS MATCHES "--coverage")
  return()
endif()

# The SDK for Python, with the program as its server.
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sdk/python/tests/test_*.py)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  string(REGEX REPLACE "^test_" "sdk_python_" name ${name})
  if(Python3_FOUND)
    cx_script(${name} sdk ${Python3_EXECUTABLE} ${script})
  endif()
endforeach()

# The SDK for TypeScript; `packages` runs the real packages that it integrates with.
foreach(kind types unit server docs)
  cx_script(sdk_typescript_${kind} sdk ${CMAKE_CURRENT_SOURCE_DIR}/sdk_typescript.sh ${kind})
endforeach()
cx_script(sdk_typescript_packages external ${CMAKE_CURRENT_SOURCE_DIR}/sdk_typescript.sh packages)

# cx_check(NAME COMMAND...): a script that prints why when it fails.
function(cx_check name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS check SKIP_RETURN_CODE 77)
endfunction()

if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  set(cxx clang++)
else()
  set(cxx g++)
endif()

if(Python3_FOUND)
  cx_check(check_layers ${Python3_EXECUTABLE} tools/check_layers.py)
  cx_check(check_api_types ${Python3_EXECUTABLE} tools/api_types.py --check $<TARGET_FILE:cortex>)
  cx_check(check_docs ${Python3_EXECUTABLE} tools/check_docs.py)
  cx_check(check_coverage ${Python3_EXECUTABLE} tools/check_coverage.py $<TARGET_FILE:cortex>)
  cx_check(check_format ${Python3_EXECUTABLE} tools/check_format.py)
  cx_check(check_prose ${Python3_EXECUTABLE} tools/check_prose.py)
  cx_check(check_names ${Python3_EXECUTABLE} tools/check_names.py)
  cx_check(check_obeyed ${Python3_EXECUTABLE} tools/check_obeyed.py)
  cx_check(check_packages ${Python3_EXECUTABLE} tools/check_packages.py)
  cx_check(check_quarantine ${Python3_EXECUTABLE} tools/quarantine.py)
  cx_script(checks check ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_checks.py)
  cx_check(check_layers_selftest ${Python3_EXECUTABLE} tools/check_layers.py --selftest)
endif()
cx_check(check_unit tools/check_unit.sh)
cx_check(check_symbols tools/check_symbols.sh $<TARGET_FILE:cortex_shared>)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  cx_check(check_hardening tools/check_hardening.sh ${CMAKE_C_COMPILER} $<TARGET_FILE:cortex_static>
    $<TARGET_FILE:cortex> $<TARGET_FILE:cortex-verify>)
endif()
cx_check(check_headers ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} CXX=${cxx}
  tools/check_headers.sh)

# Built only by its test, with what every module is built with: each banned call must be refused.
add_library(banned_probe OBJECT EXCLUDE_FROM_ALL banned/probe.c)
cx_own_sources(banned_probe)
cx_check(banned_calls_do_not_compile ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR}
  --target banned_probe)
set(refused "")
foreach(call strcpy sprintf strtok localtime system)
  string(APPEND refused "poisoned.*${call}.*")
endforeach()
set_tests_properties(banned_calls_do_not_compile PROPERTIES
  PASS_REGULAR_EXPRESSION ${refused} RUN_SERIAL TRUE)

add_test(NAME install COMMAND install/test_install.sh ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER}
  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(install PROPERTIES LABELS install)

# The page's own tests, where node and what its lock file names are there.
foreach(kind lint unit browser)
  cx_script(web_${kind} web ${CMAKE_CURRENT_SOURCE_DIR}/web.sh ${kind})
endforeach()
set_tests_properties(web_browser PROPERTIES PROCESSORS 2 COST 300)
set_tests_properties(web_unit PROPERTIES COST 100)

# What `scripts/test.sh --quick` leaves out of unit, check, cli and vectors: most of what starts many
# governed runs, servers or compilers.  What is left must take less than four minutes on two cores.
foreach(name cli_attack cli_canary cli_day1 cli_demo cli_diff cli_evidence cli_hostile_text cli_http cli_intent
    cli_mcp cli_replay cli_run cli_run_agents cli_run_approvals cli_run_life cli_run_merge cli_run_projects
    cli_runs_http cli_split cli_watch example_govern check_headers vectors_attack vectors_run)
  if(NOT TEST ${name})
    message(FATAL_ERROR "tests/extra.cmake lists ${name} as slow, and there is no such test")
  endif()
  set_property(TEST ${name} APPEND PROPERTY LABELS slow)
endforeach()

# A build without sandboxes says so (tests/macos/README.md).
if(Python3_FOUND AND NOT CORTEX_PLATFORM STREQUAL "linux")
  cx_script(needs_linux cli ${Python3_EXECUTABLE} macos/test_needs_linux.py)
endif()
