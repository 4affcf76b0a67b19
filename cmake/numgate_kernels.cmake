# numgate_add_cpu_kernels(TARGET x.cu...): compiles kernels with g++ against the CPU backend. The same
# file can belong to a CUDA target too, so g++ sees it through a one-line source in the build tree.
function(numgate_add_cpu_kernels target)
  foreach(file ${ARGN})
    get_filename_component(path ${file} ABSOLUTE)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${path})
    set(wrapper ${CMAKE_BINARY_DIR}/cpu_kernels/${name}.cpp)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${name}\"\n" @ONLY)
    target_sources(${target} PRIVATE ${wrapper})
    # `#pragma unroll` speaks to nvcc alone.
    set_source_files_properties(${wrapper} PROPERTIES COMPILE_OPTIONS -Wno-unknown-pragmas)
  endforeach()
  target_link_libraries(${target} PUBLIC numgate_simt)
endfunction()

# numgate_add_cuda_kernels(TARGET x.cu...): compiles the same kernels with nvcc.
function(numgate_add_cuda_kernels target)
  target_sources(${target} PRIVATE ${ARGN})
  # nvcc does not know g++'s own options, which the directory gives to every target.
  get_target_property(options ${target} COMPILE_OPTIONS)
  list(TRANSFORM options REPLACE "^(-march=.*|-fsanitize=.*|-fno-sanitize.*|-g1)$"
       "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${options}" CUDA_STANDARD 20)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr;-Xcompiler=-ffp-contract=off>")
  target_link_libraries(${target} PUBLIC numgate_core CUDA::cudart)
endfunction()
