# What is installed: the libraries, the headers, what CMake and pkg-config read, the command and its Python package.
# PREFIX/bin/gapless finds PREFIX/share/gapless/python, which finds PREFIX/lib. pip leaves out the component `command`,
# since it installs the command in its own way.
install(TARGETS ${gapless_libraries} LIBRARY DESTINATION lib)
# The C headers, and what Fortran programs include (.fh) or compile (.f90).
install(DIRECTORY include/gapless DESTINATION include)
# find_package(gapless), and `pkg-config gapless` or `gapless-core`.
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_BINARY_DIR}/package)
write_basic_package_version_file(${_package}/gapless-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/package/gapless.pc.in ${_package}/gapless.pc @ONLY)
configure_file(cmake/package/gapless-core.pc.in ${_package}/gapless-core.pc @ONLY)
install(FILES cmake/package/gapless-config.cmake ${_package}/gapless-config-version.cmake DESTINATION lib/cmake/gapless)
install(FILES ${_package}/gapless.pc ${_package}/gapless-core.pc DESTINATION lib/pkgconfig)
install(PROGRAMS bin/gapless DESTINATION bin COMPONENT command)
install(DIRECTORY python/gapless DESTINATION share/gapless/python COMPONENT command FILES_MATCHING PATTERN "*.py")
