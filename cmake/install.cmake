# What `cmake --install` puts where; consumers find it with pkg-config or find_package(cortex).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cortex)

install(TARGETS cortex cortex-verify RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set_target_properties(cortex_shared PROPERTIES EXPORT_NAME cortex)
install(TARGETS cortex_shared EXPORT cortexTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS cortex_static EXPORT cortexStaticTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cortex DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

# Two exports: a machine that only has the shared library need not have what the static one links.
install(EXPORT cortexTargets NAMESPACE cortex:: DESTINATION ${package_dir})
install(EXPORT cortexStaticTargets NAMESPACE cortex:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cortexConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cortexConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cortexConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cortexConfig.cmake
  ${PROJECT_BINARY_DIR}/cortexConfigVersion.cmake DESTINATION ${package_dir})

# Relative to where cortex.pc lies, so that `cmake --install --prefix` and moved trees are right.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
set(CORTEX_PC_PREFIX "\${pcfiledir}/${pc_to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/cortex.pc.in ${PROJECT_BINARY_DIR}/cortex.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cortex.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(section 1 3 5 8)
  file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.${section})
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# What the program writes about itself; where a foreign one cannot be run, it is left out.
if((CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR) OR CORTEX_SANITIZE OR CORTEX_FUZZ)
  return()
endif()
set(made ${PROJECT_BINARY_DIR}/share)
set(scripts "")
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${made}/cortex.${shell} DEPENDS cortex VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${made}
    COMMAND cortex completion ${shell} > ${made}/cortex.${shell})
  list(APPEND scripts ${made}/cortex.${shell})
endforeach()
add_custom_target(completions ALL DEPENDS ${scripts})
# OPTIONAL: a build of the programs alone can be installed too.
install(FILES ${made}/cortex.bash RENAME cortex OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${made}/cortex.zsh RENAME _cortex OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${made}/cortex.fish OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# For validators of others; ours carries them.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/cortex)

# The tables of the index in PostgreSQL, for administrators; the program makes them itself.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sql DESTINATION ${CMAKE_INSTALL_DATADIR}/cortex)

# Manual pages made from the program, the public headers and docs/; tools/make_man.py says which.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_FOUND OR CMAKE_CROSSCOMPILING)
  message(STATUS "Without Python, and for another machine, only the manual pages of docs/man are installed")
  return()
endif()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/formats/*.md
  ${PROJECT_SOURCE_DIR}/include/cortex/*.h)
add_custom_command(OUTPUT ${made}/man.stamp VERBATIM
  DEPENDS cortex ${sources} ${PROJECT_SOURCE_DIR}/tools/make_man.py
    ${PROJECT_SOURCE_DIR}/docs/operating.md
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_man.py $<TARGET_FILE:cortex>
    ${made}/man
  COMMAND ${CMAKE_COMMAND} -E touch ${made}/man.stamp)
add_custom_target(manual ALL DEPENDS ${made}/man.stamp)
foreach(section 1 3 5 8)
  install(DIRECTORY ${made}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
    OPTIONAL FILES_MATCHING PATTERN "*.${section}")
endforeach()
