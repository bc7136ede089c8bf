# cx_module(NAME [LINKS target...]): src/NAME/**.c as one OBJECT library, banned.h forced into each file.
# cx_library(): all modules so far as libcortex, static and shared.
# cx_program(NAME FOLDER): a program from FOLDER/**.c on top of the static library.
set(CX_MODULES "" CACHE INTERNAL "")
set(CX_LINKS "" CACHE INTERNAL "")

function(cx_own_sources target)
  target_link_libraries(${target} PRIVATE cx_flags)
  target_compile_options(${target} PRIVATE -include base/banned.h)
endfunction()

function(cx_module name)
  cmake_parse_arguments(MODULE "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
  cx_platform_sources(sources)
  add_library(module_${name} OBJECT ${sources})
  cx_own_sources(module_${name})
  target_link_libraries(module_${name} PRIVATE ${MODULE_LINKS})
  set(CX_MODULES ${CX_MODULES} ${name} CACHE INTERNAL "")
  set(CX_LINKS ${CX_LINKS} ${MODULE_LINKS} CACHE INTERNAL "")
endfunction()

# The hash kernels: their order of additions is chosen, and gcc would choose another.
macro(cx_kernels)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set_source_files_properties(src/crypto/digest_avx512.c src/crypto/sha512_avx512.c src/crypto/digest_neon.c PROPERTIES
      COMPILE_OPTIONS "$<$<CONFIG:Release>:-fno-tree-reassoc;-O3>")
  endif()
  if(CORTEX_ARM64) # kernels that run only where the processor has these instructions
    set_source_files_properties(src/crypto/digest_armv8.c src/crypto/sha1_armv8.c src/crypto/crc32c_armv8.c PROPERTIES
      COMPILE_OPTIONS -march=armv8-a+crypto+crc)
  endif()
endmacro()

function(cx_library)
  set(objects "")
  foreach(module ${CX_MODULES})
    list(APPEND objects $<TARGET_OBJECTS:module_${module}>)
  endforeach()
  add_library(cortex_static STATIC ${objects})
  set(kinds static)
  if(NOT CORTEX_STATIC)
    add_library(cortex_shared SHARED ${objects})
    list(APPEND kinds shared)
  endif()
  foreach(kind ${kinds})
    # Before 1.0 a minor version may change the interface, so it is part of the shared name.
    set_target_properties(cortex_${kind} PROPERTIES OUTPUT_NAME cortex VERSION ${PROJECT_VERSION}
      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    target_include_directories(cortex_${kind} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  # PRIVATE: whoever links the static library links these too, but does not compile against them.
  target_link_libraries(cortex_static PRIVATE ${CX_LINKS})
  if(CORTEX_STATIC)
    return()
  endif()
  target_link_libraries(cortex_shared PRIVATE ${CX_LINKS})
  if(APPLE) # what is not CX_API is hidden (flags.cmake); its linker knows no versions of symbols
    return()
  endif()
  # Each symbol carries the version of the interface: a program keeps the one it was built with.
  set(map ${CMAKE_CURRENT_BINARY_DIR}/libcortex.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/libcortex.map.in ${map} @ONLY)
  target_link_options(cortex_shared PRIVATE -Wl,--version-script=${map})
  set_target_properties(cortex_shared PROPERTIES LINK_DEPENDS ${map})
  if(CORTEX_SANITIZE)
    target_link_options(cortex_shared PRIVATE -fsanitize=${CORTEX_SANITIZE})
  else()
    cx_shadow_stack(cortex_shared)
  endif()
endfunction()

# The linker drops a mark that one object lacks, and the C library's start files often lack both.  A
# shadow stack asks nothing of them.  IBT does (_start is jumped to), so its mark is theirs to allow.
include(CheckLinkerFlag)
check_linker_flag(C -Wl,-z,shstk CORTEX_LINK_SHSTK)
function(cx_shadow_stack target)
  if(CORTEX_CF_PROTECTION AND CORTEX_LINK_SHSTK)
    target_link_options(${target} PRIVATE -Wl,-z,shstk)
  endif()
endfunction()

function(cx_program name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  add_executable(${name} ${sources})
  cx_own_sources(${name})
  target_link_libraries(${name} PRIVATE cortex_static)
  if(APPLE)
    target_link_options(${name} PRIVATE -Wl,-dead_strip)
  elseif(NOT CORTEX_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro -Wl,-z,now)
    cx_shadow_stack(${name})
  endif()
  if(CORTEX_STATIC) # still at an address of its own each time
    target_link_options(${name} PRIVATE -static-pie)
  endif()
endfunction()
