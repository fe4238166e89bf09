# With GAPLESS_PORTABLE the libraries run with glibc 2.28 and the C++ library of GCC 8, or later ones: what the
# manylinux_2_28 tag of a wheel promises. Compiling is the same; what differs is the libraries that the linker sees.
option(GAPLESS_PORTABLE "Link the libraries so that they run on systems with glibc 2.28 or later" OFF)
if(NOT GAPLESS_PORTABLE)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(portable ${CMAKE_CURRENT_LIST_DIR}/portable)
set(stand_ins ${CMAKE_BINARY_DIR}/stand_ins)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${portable}/stand_ins.py)
if(${portable}/stand_ins.py IS_NEWER_THAN ${stand_ins}/libc.so)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${portable}/stand_ins.py ${stand_ins} ${CMAKE_CXX_COMPILER}
            GLIBC=2.28 GLIBCXX=3.4.24 CXXABI=1.3.11
    COMMAND_ERROR_IS_FATAL ANY)
endif()

add_library(gapless-later-symbols OBJECT ${portable}/later_symbols.cpp)
foreach(library IN LISTS gapless_libraries)
  # An option, for CMake would have the libraries of the build tree look for others in a folder that it knows of.
  # What the stand-ins lack must fail here and not where the library is loaded.
  target_link_options(${library} PRIVATE -L${stand_ins} -Wl,-z,defs)
  if(NOT library STREQUAL gapless-shim)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:gapless-later-symbols>)
  endif()
endforeach()
