# cx_page(TARGET): the debugger's files, built by web/build.mjs, become part of TARGET as the table
# that src/server/page/page_table.h declares.  Without node, or without web/node_modules, the table is
# empty: everything else is built all the same, and the server says how to get the page.
find_program(CORTEX_NODE NAMES node nodejs)
set(web ${PROJECT_SOURCE_DIR}/web)
set(ready OFF)
if(CORTEX_NODE AND EXISTS ${web}/node_modules/esbuild/package.json
    AND EXISTS ${web}/node_modules/preact/package.json)
  set(ready ON)
endif()
set(CORTEX_WEB AUTO CACHE STRING "carry the debugger's page in the program: AUTO (when it can be built), ON, OFF")
set_property(CACHE CORTEX_WEB PROPERTY STRINGS AUTO ON OFF)
if(CORTEX_WEB STREQUAL "AUTO")
  set(CX_PAGE ${ready})
elseif(CORTEX_WEB AND NOT ready)
  message(FATAL_ERROR "the page cannot be built: node, or web/node_modules (scripts/npm-ci.sh build), is missing")
else()
  set(CX_PAGE ${CORTEX_WEB})
endif()

function(cx_page target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/page_table.c)
  if(NOT CX_PAGE)
    file(CONFIGURE OUTPUT ${out} CONTENT
"/* Made by cmake/page.cmake: built without the page. */
#include \"server/page/page_table.h\"

const cx_page_file cx_page_table[1] = {{0}};
const size_t cx_page_count = 0;
const cx_page_body cx_page_single_head = {0}, cx_page_single_tail = {0};
")
    target_sources(${target} PRIVATE ${out})
    return()
  endif()
  set(web ${PROJECT_SOURCE_DIR}/web)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CORTEX_NODE} ${web}/build.mjs --out ${CMAKE_CURRENT_BINARY_DIR}/page --table ${out}
    DEPENDS ${sources} ${web}/build.mjs ${web}/package-lock.json ${web}/tsconfig.json VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
