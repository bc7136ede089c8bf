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

file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
