# Compiler flags every target of ours gets; warnings are errors unless a packager says otherwise.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

add_library(cx_flags INTERFACE)
target_compile_definitions(cx_flags INTERFACE _GNU_SOURCE CX_VERSION="${PROJECT_VERSION}"
  $<$<CONFIG:Debug>:CX_DEBUG=1>)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  # Here too files are longer than 2 GiB, and clocks go on after 2038.
  target_compile_definitions(cx_flags INTERFACE _FILE_OFFSET_BITS=64 _TIME_BITS=64)
endif()

# A sum of floats has the same digits everywhere: the x87 (i386) keeps more than a double has, and s390x
# calculates floats as doubles where nobody tells it not to.
include(CheckCSourceCompiles)
check_c_source_compiles("#include <float.h>
  _Static_assert(FLT_EVAL_METHOD == 0, \"\");
  int main(void) { return 0; }" CORTEX_EXACT_FLOATS)
check_c_source_compiles("#ifndef __i386__\n#error\n#endif\nint main(void) { return 0; }" CORTEX_I386)
if(CORTEX_I386)
  target_compile_options(cx_flags INTERFACE -msse2 -mfpmath=sse)
elseif(NOT CORTEX_EXACT_FLOATS)
  target_compile_options(cx_flags INTERFACE -fexcess-precision=fast)
endif()
target_include_directories(cx_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(cx_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wpointer-arith -Wwrite-strings -Wformat=2 -Wno-format-nonliteral
  $<$<BOOL:${CORTEX_WERROR}>:-Werror>
  -fno-strict-overflow -fstack-protector-strong
  $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>
  # A section each, so that a program carries only what it calls (cortex-verify: rooms.cmake).
  $<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>
  # Paths of the building machine never reach a binary.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
# The same build must print the same digits everywhere: no fused multiply-add behind our back.
target_compile_options(cx_flags INTERFACE -ffp-contract=off)

if(CORTEX_SANITIZE)
  target_compile_options(cx_flags INTERFACE -fsanitize=${CORTEX_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cx_flags INTERFACE -fsanitize=${CORTEX_SANITIZE})
endif()

if(CORTEX_FUZZ)
  # Everything counts coverage; only the targets bring a main of their own.
  target_compile_options(cx_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(cx_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
