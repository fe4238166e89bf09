# What the layers do not install themselves: core, what is built only where its headers are,
# the C API's header, the command and its Python package.
# PREFIX/bin/gapless finds PREFIX/share/gapless/python, which finds PREFIX/lib. pip leaves out the component `command`,
# since it installs the command in its own way.
install(TARGETS gapless-core)
foreach(optional gapless-mpich gapless-openmpi gapless-abi gapless-cuda)
  if(TARGET ${optional})
    install(TARGETS ${optional} LIBRARY DESTINATION lib)
  endif()
endforeach()
install(DIRECTORY include/gapless DESTINATION include FILES_MATCHING PATTERN "*.h")
install(PROGRAMS bin/gapless DESTINATION bin COMPONENT command)
install(DIRECTORY python/gapless DESTINATION share/gapless/python COMPONENT command FILES_MATCHING PATTERN "*.py")
