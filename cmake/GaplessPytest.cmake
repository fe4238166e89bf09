# One ctest test per file of pytest tests, by a Python that has what they import.

# gapless_find_test_python(<variable> <modules> [<directory to look in first>...])
# Sets the variable to a Python that imports the modules (a list), or to "" after a warning that says which tests are
# not registered for want of it.
function(gapless_find_test_python variable modules)
  find_program(${variable}_PROGRAM python3 HINTS ${ARGN} ${PROJECT_SOURCE_DIR}/build/env/bin NO_CMAKE_SYSTEM_PATH)
  find_program(${variable}_PROGRAM python3)
  string(REPLACE ";" ", " imports "${modules}")
  execute_process(COMMAND ${${variable}_PROGRAM} -c "import ${imports}" RESULT_VARIABLE missing ERROR_QUIET)
  if(missing)
    message(WARNING "${${variable}_PROGRAM} lacks one of ${imports}: "
                    "the pytest tests in ${CMAKE_CURRENT_SOURCE_DIR} are not registered")
    set(${variable} "" PARENT_SCOPE)
  else()
    set(${variable} ${${variable}_PROGRAM} PARENT_SCOPE)
  endif()
endfunction()

# gapless_pytest(<layer> <label> PYTHON <python> NAMES <name>... ENVIRONMENT <NAME=value>...)
# Registers <layer>.<name> for each test_<name>.py of this folder.
function(gapless_pytest layer label)
  cmake_parse_arguments(pytest "" PYTHON "NAMES;ENVIRONMENT" ${ARGN})
  foreach(name IN LISTS pytest_NAMES)
    add_test(NAME ${layer}.${name} COMMAND ${pytest_PYTHON} -m pytest -q -p no:cacheprovider
                                           ${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.py)
    set_tests_properties(${layer}.${name} PROPERTIES LABELS ${label})
    set_property(TEST ${layer}.${name} PROPERTY ENVIRONMENT ${pytest_ENVIRONMENT} PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endfunction()
