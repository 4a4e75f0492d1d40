# shakedown_warnings: what the compiler must not find in code of ours. Parts.cmake links it PRIVATE to everything, so it
# never reaches users of a part. Headers of others are SYSTEM everywhere and stay silent.

add_library(shakedown_warnings INTERFACE)
target_compile_options(shakedown_warnings INTERFACE
  -Wall -Wextra -Wpedantic
  -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wcast-qual -Wformat=2 -Wextra-semi -Wunused
  -Wmisleading-indentation
  # A declaration of a fault or a check names the fields it needs and leaves the others at their defaults.
  -Wno-missing-field-initializers)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(shakedown_warnings INTERFACE
    -Wduplicated-cond -Wlogical-op
    # False with GCC 12 in C++20: `"text" + std::string` (GCC bug 105651), std::optional and kin (GCC bug 80635).
    -Wno-restrict -Wno-maybe-uninitialized
    # False with GCC 12 in std::string from a precompiled header: there it is no longer a header of the system.
    -Wno-array-bounds -Wno-stringop-overflow)
endif()

if(SHAKEDOWN_WERROR)
  target_compile_options(shakedown_warnings INTERFACE -Werror)
endif()

# Sanitizers have to be in every object and every link, so they are options of the directory, not of a target.
if(SHAKEDOWN_SANITIZE)
  add_compile_options(-fsanitize=${SHAKEDOWN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SHAKEDOWN_SANITIZE})
  if(SHAKEDOWN_SANITIZE STREQUAL "thread")
    # Boost.Asio uses std::atomic_thread_fence, which ThreadSanitizer does not model; GCC says so at each use.
    add_compile_options(-Wno-tsan)
  endif()
endif()
