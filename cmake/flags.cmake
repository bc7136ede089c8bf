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
if(APPLE)
  target_compile_definitions(cx_flags INTERFACE _DARWIN_C_SOURCE)
endif()
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
# Apple's compiler uses all of its processors' instructions by itself.
check_c_source_compiles("#if !defined(__aarch64__) || defined(__APPLE__)\n#error\n#endif\nint main(void) { return 0; }"
  CORTEX_ARM64)
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
  # A section each, so that a program carries only what it calls (cortex-verify: modules.cmake).
  $<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>
  # Paths of the building machine never reach a binary.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
  # Older ones count members that a designated initializer leaves out, which are zero, and take another member
  # of a union for the buffer that a call writes to.
  target_compile_options(cx_flags INTERFACE -Wno-missing-field-initializers -Wno-stringop-overflow)
endif()
# The same build must print the same digits everywhere: no fused multiply-add behind our back.
target_compile_options(cx_flags INTERFACE -ffp-contract=off)

# What makes a fault harder to use, as far as the compiler has it for this machine.
include(CheckCCompilerFlag)
check_c_compiler_flag(-fstack-clash-protection CORTEX_STACK_CLASH)
check_c_compiler_flag(-fcf-protection=full CORTEX_CF_PROTECTION)
if(CORTEX_STACK_CLASH)
  target_compile_options(cx_flags INTERFACE -fstack-clash-protection)
endif()
if(CORTEX_CF_PROTECTION) # x86: IBT and shadow stacks
  target_compile_options(cx_flags INTERFACE -fcf-protection=full)
else()
  check_c_compiler_flag(-mbranch-protection=standard CORTEX_BRANCH_PROTECTION)
  if(CORTEX_BRANCH_PROTECTION) # arm64: PAC and BTI
    target_compile_options(cx_flags INTERFACE -mbranch-protection=standard)
  endif()
endif()
# Checked calls need an optimiser, and sanitizers have their own.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CORTEX_SANITIZE)
  set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Werror")
  check_c_source_compiles("#include <stdlib.h>
    #if __USE_FORTIFY_LEVEL != 3
    #error
    #endif
    int main(void) { return 0; }" CORTEX_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  if(CORTEX_FORTIFY_3)
    target_compile_options(cx_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  else()
    target_compile_options(cx_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endif()

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
