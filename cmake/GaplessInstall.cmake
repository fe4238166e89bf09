# What is installed: the libraries, the C API's header, the command and its Python package.
# PREFIX/bin/gapless finds PREFIX/share/gapless/python, which finds PREFIX/lib. pip leaves out the component `command`,
# since it installs the command in its own way.
install(TARGETS ${gapless_libraries} LIBRARY DESTINATION lib)
install(DIRECTORY include/gapless DESTINATION include FILES_MATCHING PATTERN "*.h")
install(PROGRAMS bin/gapless DESTINATION bin COMPONENT command)
install(DIRECTORY python/gapless DESTINATION share/gapless/python COMPONENT command FILES_MATCHING PATTERN "*.py")
