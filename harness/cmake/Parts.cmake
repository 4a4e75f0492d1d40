# How the pieces of Shakedown are declared: shakedown_part, shakedown_program, shakedown_test, and the check that no test
# is forgotten. Sources are relative to the folder that calls.

include(GoogleTest)

function(_shakedown_known_arguments function)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${ARG_NAME}): not understood: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_NAME)
    message(FATAL_ERROR "${function}: NAME is missing")
  endif()
endfunction()

# shakedown_part(NAME target [SOURCES a.cc b.cc ...] [DEPS target ...])
# A static library, or an interface library when there are no sources. Includes are written from the root of the
# repository ("harness/base/status.h"). DEPS are public: what a part may include is what stands here.
function(shakedown_part)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS")
  _shakedown_known_arguments(shakedown_part)
  if(ARG_SOURCES)
    add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
    target_include_directories(${ARG_NAME} PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE shakedown_warnings)
    target_precompile_headers(${ARG_NAME} REUSE_FROM shakedown_precompiled_part)
  else()
    add_library(${ARG_NAME} INTERFACE)
    target_include_directories(${ARG_NAME} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${ARG_NAME} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# shakedown_program(NAME target SOURCES main.cc ... [DEPS target ...])
# An executable. Called from harness, injectors, trainer or analysis it lands in the build folder itself
# (build/shakedown); from below tests, in the folder of that name.
function(shakedown_program)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS")
  _shakedown_known_arguments(shakedown_program)
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} shakedown_warnings)
endfunction()

# shakedown_test(NAME x_test [SOURCES x_test.cc ...] [DEPS target ...] [LABELS label ...] [TIMEOUT seconds]
#                [NEEDS target ...] [TORCH] [OWN_MAIN])
# A GoogleTest program; each TEST in it becomes a test of ctest, called "x_test/Suite.Name".
#   SOURCES   default: NAME.cc
#   LABELS    default: unit (others: contract, layout, e2e, smoke, slow, gpu)
#   TIMEOUT   of one TEST, in seconds; default 60
#   NEEDS     programs that the test starts: built before it
#   TORCH     left out, and counted as known, in a build without LibTorch
#   OWN_MAIN  the sources bring main()
# The test sees SHAKEDOWN_SOURCE_DIR and SHAKEDOWN_BINARY_DIR as string literals. Its own code is not optimised, which
# halves the time to compile it; what it tests is. Under the sanitizers a TEST may take four times as long.
function(shakedown_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "TORCH;OWN_MAIN" "NAME;TIMEOUT" "SOURCES;DEPS;LABELS;NEEDS")
  _shakedown_known_arguments(shakedown_test)
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${ARG_NAME}.cc)
  endif()
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    set_property(GLOBAL APPEND PROPERTY SHAKEDOWN_TEST_SOURCES "${source}")
  endforeach()
  if(ARG_TORCH AND NOT SHAKEDOWN_WITH_TORCH)
    message(STATUS "Without LibTorch: ${ARG_NAME} is left out")
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(SHAKEDOWN_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()

  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(${ARG_NAME} PRIVATE -O0)
  target_precompile_headers(${ARG_NAME} REUSE_FROM shakedown_precompiled_test)
  target_compile_definitions(${ARG_NAME} PRIVATE
    "SHAKEDOWN_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "SHAKEDOWN_BINARY_DIR=\"${PROJECT_BINARY_DIR}\"")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} shakedown_warnings GTest::gmock GTest::gtest Threads::Threads)
  if(NOT ARG_OWN_MAIN)
    target_link_libraries(${ARG_NAME} PRIVATE GTest::gmock_main)
  endif()
  if(ARG_NEEDS)
    add_dependencies(${ARG_NAME} ${ARG_NEEDS})
  endif()

  # PRE_TEST: the programs are asked for their tests when ctest starts, not while they are built, so a broken one fails
  # a test and not the build. The labels are set in a file of their own because PROPERTIES splits a list in two.
  gtest_discover_tests(${ARG_NAME}
    DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${ARG_NAME}/"
    TEST_LIST ${ARG_NAME}_TESTS
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
  # Whole jobs are judged by the clock too: they run alone.
  set(alone OFF)
  if("e2e" IN_LIST ARG_LABELS)
    set(alone ON)
  endif()
  set(labels "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_labels.cmake")
  file(CONFIGURE OUTPUT "${labels}" @ONLY CONTENT
    [[foreach(test IN LISTS @ARG_NAME@_TESTS)
  set_tests_properties("${test}" PROPERTIES LABELS "@ARG_LABELS@" RUN_SERIAL @alone@)
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels}")
endfunction()

# shakedown_check_stray_tests(): last in tests/CMakeLists.txt. A *_test.cc that belongs to no test stops the configure
# step: nobody notices a test that is not built.
function(shakedown_check_stray_tests)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cc")
  get_property(known GLOBAL PROPERTY SHAKEDOWN_TEST_SOURCES)
  list(REMOVE_ITEM found "" ${known})
  if(found)
    list(JOIN found "\n  " found)
    message(FATAL_ERROR "Tests that nothing builds; add each to a shakedown_test(...) or remove it:\n  ${found}")
  endif()
endfunction()
