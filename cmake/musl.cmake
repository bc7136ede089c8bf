# A toolchain file for programs linked with musl: Debian's compiler for $CORTEX_MUSL_ARCH with the specs that
# scripts/musl.sh made in $CORTEX_MUSL, whose libraries these are.  scripts/static.sh uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{CORTEX_MUSL_ARCH})
cmake_host_system_information(RESULT here QUERY OS_PLATFORM)
set(CMAKE_C_COMPILER gcc)
if(NOT here STREQUAL CMAKE_SYSTEM_PROCESSOR)
  set(CMAKE_C_COMPILER ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-gcc)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static)
endif()
set(CMAKE_C_FLAGS_INIT "-specs=$ENV{CORTEX_MUSL}/musl.specs -ffile-prefix-map=$ENV{CORTEX_MUSL}=musl")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static-pie") # of tests too: what is tried is what is given out
set(CMAKE_FIND_ROOT_PATH $ENV{CORTEX_MUSL}/opt)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} $ENV{CORTEX_MUSL}/opt/lib/pkgconfig)
