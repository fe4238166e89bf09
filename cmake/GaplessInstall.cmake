# What is installed: the libraries, the headers, the command and its Python package.
# PREFIX/bin/gapless finds PREFIX/share/gapless/python, which finds PREFIX/lib. pip leaves out the component `command`,
# since it installs the command in its own way.
install(TARGETS ${gapless_libraries} LIBRARY DESTINATION lib)
# The C headers, and what Fortran programs include (.fh) or compile (.f90).
install(DIRECTORY include/gapless DESTINATION include)
install(PROGRAMS bin/gapless DESTINATION bin COMPONENT command)
install(DIRECTORY python/gapless DESTINATION share/gapless/python COMPONENT command FILES_MATCHING PATTERN "*.py")
