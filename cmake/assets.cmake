# cx_assets(TARGET PLACE...): each place that is a file, and every file below one that is a folder, becomes part of
# TARGET, as the table that src/rules/assets.h declares.
#
# Called as a script (cmake -DROOT= -DLIST= -DOUT= -P) it writes that table.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Made by cmake/assets.cmake. */\n#include \"rules/assets_table.h\"\n\n")
  set(table "")
  set(count 0)
  file(STRINGS ${LIST} FILES)
  foreach(name ${FILES})
    file(READ ${ROOT}/${name} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
    # A zero behind it, not counted: an empty file needs a byte too.
    string(APPEND text "static const unsigned char file_${count}[] = {\n${bytes}0};\n")
    string(APPEND table "    {\"${name}\", file_${count}, ${size}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  string(APPEND text "\nconst cx_run_asset_file cx_run_asset_table[] = {\n${table}"
    "    {NULL, NULL, 0},\n};\nconst size_t cx_run_asset_count = ${count};\n")
  file(WRITE ${OUT} "${text}")
  return()
endif()

set(CX_ASSETS_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(cx_assets target)
  set(globs "")
  foreach(place ${ARGN})
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${place})
      list(APPEND globs ${PROJECT_SOURCE_DIR}/${place}/*)
    else()
      list(APPEND globs ${PROJECT_SOURCE_DIR}/${place})
    endif()
  endforeach()
  file(GLOB_RECURSE names CONFIGURE_DEPENDS LIST_DIRECTORIES false
    RELATIVE ${PROJECT_SOURCE_DIR} ${globs})
  list(FILTER names EXCLUDE REGEX "(~|\\.swp|\\.orig|\\.rej)$")
  list(SORT names COMPARE STRING)
  set(paths ${names})
  list(TRANSFORM paths PREPEND ${PROJECT_SOURCE_DIR}/)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/assets_table.c)
  # Through a file: names may come and go without the rule looking different otherwise.
  string(REPLACE ";" "\n" listing "${names}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/assets.txt CONTENT "${listing}\n")
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
      -DLIST=${CMAKE_CURRENT_BINARY_DIR}/assets.txt -DOUT=${out} -P ${CX_ASSETS_SCRIPT}
    DEPENDS ${paths} ${CX_ASSETS_SCRIPT} ${CMAKE_CURRENT_BINARY_DIR}/assets.txt VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
