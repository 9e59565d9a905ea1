# SPDX-License-Identifier: Apache-2.0
# A test that cannot run here: it counts as skipped, and says why.
function(similis_skipped_test name why)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${why}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()
