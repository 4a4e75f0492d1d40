# LibTorch as imported targets: wheel::torch_cpu (link this one) and wheel::c10. Written by hand because
# find_package(Torch) wants nvcc and a CUDA toolkit, links the whole CUDA stack into every program, and cannot work on
# the handful of files that ./dev setup keeps. Only trainer/torch and injectors/sim/compute may link these.

foreach(needed lib/libtorch_cpu.so lib/libc10.so lib/libgomp.so.1 include/torch/csrc/distributed/c10d/reducer.hpp
        ../nvidia/cu13/lib/libcudart.so.13)
  if(NOT EXISTS "${SHAKEDOWN_TORCH_ROOT}/${needed}")
    message(FATAL_ERROR "SHAKEDOWN_WITH_TORCH is ON but SHAKEDOWN_TORCH_ROOT (\"${SHAKEDOWN_TORCH_ROOT}\") lacks "
                        "${needed}. ./dev build fetches LibTorch and passes the folder; or: -DSHAKEDOWN_WITH_TORCH=OFF")
  endif()
endforeach()

foreach(library c10 torch_cpu)
  add_library(wheel::${library} SHARED IMPORTED GLOBAL)
  set_target_properties(wheel::${library} PROPERTIES IMPORTED_LOCATION "${SHAKEDOWN_TORCH_ROOT}/lib/lib${library}.so")
endforeach()

# Include folders of imported targets are SYSTEM: torch's own warnings stay out. gloo_abi stands in for the Gloo headers
# that the wheel lacks (trainer/torch/gloo_abi/README.md). The definitions are those that the library was built with.
# A program that links these gets <torch>/lib as its RPATH from CMake; the libraries find the rest by their own.
set_target_properties(wheel::torch_cpu PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${SHAKEDOWN_TORCH_ROOT}/include;${SHAKEDOWN_TORCH_ROOT}/include/torch/csrc/api/include;${PROJECT_SOURCE_DIR}/trainer/torch/gloo_abi"
  INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
  INTERFACE_LINK_LIBRARIES "wheel::c10")
message(STATUS "LibTorch: ${SHAKEDOWN_TORCH_ROOT}")
