# Which files of src/ are built for which system.  A file that is for some of them ends so:
#   _linux.c  Linux;
#   _posix.c  all others: calls that every POSIX system has;
#   _macos.c  macOS, with _posix.c: calls of its own;
#   _other.c  a POSIX system of which nothing else is known, with _posix.c;
#   _unix.c   Linux and such a system, what is not so on macOS.
# CORTEX_PLATFORM=posix builds _posix.c with _other.c, on Linux too: that is how _posix.c is tested here.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(system linux)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
  set(system macos)
else()
  set(system posix)
endif()
set(CORTEX_PLATFORM ${system} CACHE STRING "the files of which system are built: linux, macos, posix")
set_property(CACHE CORTEX_PLATFORM PROPERTY STRINGS linux macos posix)
set(CX_ENDINGS_linux linux unix)
set(CX_ENDINGS_macos posix macos)
set(CX_ENDINGS_posix posix other unix)
if(NOT DEFINED CX_ENDINGS_${CORTEX_PLATFORM})
  message(FATAL_ERROR "CORTEX_PLATFORM is '${CORTEX_PLATFORM}', expected linux, macos or posix")
endif()

# Sandboxes are of namespaces, mounts, seccomp, Landlock and control groups.
set(CX_LINUX_ONLY "/src/os/confine\\.c$" "/src/sandbox/sandbox(_args|_cgroup|_filter|_launcher)?\\.c$")

# Takes the files of other systems off a list.
function(cx_platform_sources list)
  set(sources ${${list}})
  foreach(ending linux posix macos other unix)
    if(NOT ending IN_LIST CX_ENDINGS_${CORTEX_PLATFORM})
      list(FILTER sources EXCLUDE REGEX "_${ending}\\.c$")
    endif()
  endforeach()
  if(NOT CORTEX_PLATFORM STREQUAL "linux")
    foreach(pattern ${CX_LINUX_ONLY})
      list(FILTER sources EXCLUDE REGEX "${pattern}")
    endforeach()
  endif()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
