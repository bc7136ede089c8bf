# cx_linked_libraries(TARGET): for programs of one file (CORTEX_STATIC).  What other builds load when it
# is first needed (src/os/library.h) is linked, and found in a table by the same names: the functions are
# read from the sources that ask for them.  Left out, so the answer is "not part of this program":
# libpq, libcurl, libcrypto, and TLS of the server.
set(CX_LINKED # name that is asked for | library | source | one function, as a pattern
  "libz.so.1|z|src/os/gzip.c|\"(inflate[A-Za-z0-9_]*|compress[A-Za-z0-9]*)\""
  "libzstd.so.1|zstd|src/os/zstd.c|\"(ZSTD_[A-Za-z0-9_]+)\""
  "libpcre2-8.so.0|pcre2-8|src/schema/pattern.c|X\\((pcre2_[a-z_0-9]+)\\)"
  "libseccomp.so.2|seccomp|src/sandbox/sandbox_filter.c|\"(seccomp_[a-z_]+)\""
  "libnghttp2.so.14|nghttp2|src/server/grpc_session.c|X\\((nghttp2_[a-z_0-9]+)\\)"
  "libutf8proc.so.2|utf8proc|src/rules/unicode.c|FIND\\(([a-z_0-9]+)\\)"
  "libmicrohttpd.so.12|microhttpd|src/server/http_mhd.c|X\\((MHD_[A-Za-z_0-9]+)\\)")

function(cx_linked_libraries target)
  set(archives "")
  set(declared "")
  set(rows "")
  foreach(row ${CX_LINKED})
    string(REGEX MATCH "^([^|]*)[|]([^|]*)[|]([^|]*)[|](.*)$" _ "${row}")
    set(name ${CMAKE_MATCH_1})
    set(library ${CMAKE_MATCH_2})
    set(source ${CMAKE_MATCH_3})
    set(pattern "${CMAKE_MATCH_4}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${source})
    find_library(CX_LINKED_${library} NAMES lib${library}.a REQUIRED)
    list(APPEND archives ${CX_LINKED_${library}})
    file(READ ${PROJECT_SOURCE_DIR}/${source} text)
    string(REGEX MATCHALL "${pattern}" places "${text}")
    set(functions "")
    foreach(place ${places})
      string(REGEX MATCH "${pattern}" _ "${place}")
      if(library STREQUAL "utf8proc" AND NOT CMAKE_MATCH_1 STREQUAL "name")
        list(APPEND functions utf8proc_${CMAKE_MATCH_1})
      elseif(NOT library STREQUAL "utf8proc")
        list(APPEND functions ${CMAKE_MATCH_1})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES functions)
    if(NOT functions)
      message(FATAL_ERROR "${source} names no function of ${name}")
    endif()
    foreach(function ${functions})
      string(APPEND declared "extern void ${function}(void);\n")
      string(APPEND rows "    {\"${name}\", \"${function}\", ${function}},\n")
    endforeach()
  endforeach()

  # The HTTP library was built with GnuTLS, whose own libraries no distribution has in this form.
  # cx_http_start refuses TLS in such a program, so none of these is reached with a session.
  execute_process(COMMAND ${CMAKE_NM} -u ${CX_LINKED_microhttpd} OUTPUT_VARIABLE unknown ERROR_QUIET
    RESULT_VARIABLE ended)
  if(NOT ended EQUAL 0)
    message(FATAL_ERROR "${CMAKE_NM} cannot read ${CX_LINKED_microhttpd}")
  endif()
  string(REGEX MATCHALL "gnutls_[a-z_0-9]+" absent "${unknown}")
  list(REMOVE_DUPLICATES absent)
  set(stubs "")
  foreach(function ${absent})
    if(function STREQUAL "gnutls_malloc") # a pointer to a function
      string(APPEND stubs "extern void *gnutls_malloc;\nvoid *gnutls_malloc;\n")
    else()
      string(APPEND stubs "extern int ${function}(void);\nint ${function}(void)\n{\n    return 0;\n}\n")
    endif()
  endforeach()

  set(out ${CMAKE_CURRENT_BINARY_DIR}/library_table.c)
  file(CONFIGURE OUTPUT ${out} CONTENT "/* Made by cmake/linked.cmake. */
#include \"os/library_linked.h\"

${declared}
const cx_library_function cx_library_table[] = {
${rows}    {NULL, NULL, NULL},
};

${stubs}")
  set(CX_LINKS ${CX_LINKS} ${archives} CACHE INTERNAL "")
  cx_loads_nothing(${target})
  target_sources(${target} PRIVATE ${out})
endfunction()

# cx_linked_none(TARGET): the table of a program that asks for none of them, as cortex-verify.
function(cx_linked_none target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/library_none.c)
  file(CONFIGURE OUTPUT ${out} CONTENT "/* Made by cmake/linked.cmake. */
#include \"os/library_linked.h\"

const cx_library_function cx_library_table[] = {{NULL, NULL, NULL}};
")
  target_sources(${target} PRIVATE ${out})
endfunction()

# cx_loads_nothing(TARGET), cx_loads_libraries(): which of library_linked.c and library.c is built.
function(cx_loads_nothing target)
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/src/os/library.c)
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()

macro(cx_loads_libraries)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/os/library_linked.c PROPERTIES HEADER_FILE_ONLY ON)
endmacro()
