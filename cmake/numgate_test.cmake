include(GoogleTest)

# numgate_test(NAME [SLOW] SOURCES f... LIBS lib...): one GoogleTest executable. SLOW tests carry
# the ctest label `slow` and run only with `scripts/test.sh --slow`.
function(numgate_test name)
  cmake_parse_arguments(ARG "SLOW" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE NUMGATE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(ARG_SLOW)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS slow TIMEOUT 3600)
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
  endif()
endfunction()
