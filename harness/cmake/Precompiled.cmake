# Precompiled headers: two thirds of the time that a file takes are the headers of the standard library, of nlohmann/json
# and, in tests, of GoogleTest. Parts.cmake gives every part and every test the one that is meant for it. There are two
# because GCC takes one only with the options that it was made with: tests are programs (-fPIE) and not optimised, parts
# go into the preload library too (-fPIC). With another -O, GCC 12 takes it and crashes. So a target with options of its
# own sets DISABLE_PRECOMPILE_HEADERS.
# Sources still include what they use; ./dev lint compiles them without this.

set(_headers
  <algorithm> <chrono> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span> <sstream>
  <string> <string_view> <thread> <vector>
  "${PROJECT_SOURCE_DIR}/harness/base/status.h" "${PROJECT_SOURCE_DIR}/harness/wire/json.h")

# ccache then sees which precompiled header a file uses.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
endif()

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cc" CONTENT "int main() {}\n")
add_library(shakedown_precompiled_part OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cc")
target_precompile_headers(shakedown_precompiled_part PRIVATE ${_headers})

add_executable(shakedown_precompiled_test EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cc")
target_precompile_headers(shakedown_precompiled_test PRIVATE ${_headers} <gmock/gmock.h> <gtest/gtest.h>)
target_compile_options(shakedown_precompiled_test PRIVATE -O0)
target_link_libraries(shakedown_precompiled_test PRIVATE GTest::gmock GTest::gtest)

foreach(target shakedown_precompiled_part shakedown_precompiled_test)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE nlohmann_json::nlohmann_json shakedown_warnings)
endforeach()
