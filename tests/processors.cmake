# The same tests as on other processors, with tests/run.sh --full: what depends on the instruction set, each time with other
# kernels of this program (GDN_ISA) or of OpenBLAS (OPENBLAS_CORETYPE). Another value is another word here; one that this
# processor or this OpenBLAS lacks is skipped, with the reason (kernels/cpu/on_processor.c).
set(GDN_ISA_VALUES v2 v3 v4)
set(OPENBLAS_CORETYPE_VALUES Prescott Nehalem Sandybridge Haswell Zen SkylakeX Cooperlake SapphireRapids)
set(GDN_ISA_TESTS test_golden test_no_allocation) # the kernels' own are in kernels/
set(OPENBLAS_CORETYPE_TESTS test_backends test_lowrank test_quiet test_golden test_no_allocation)
if(ONEDNN_LIBRARY) # whose products are not OpenBLAS's
  list(REMOVE_ITEM OPENBLAS_CORETYPE_TESTS test_backends)
endif()
set(arguments_test_golden ${CMAKE_SOURCE_DIR}/tests/golden)

add_executable(on_processor kernels/cpu/on_processor.c)
target_link_libraries(on_processor PRIVATE gdn_lowrank gdn_kernels)
foreach(variable GDN_ISA OPENBLAS_CORETYPE)
  foreach(value ${${variable}_VALUES})
    foreach(test ${${variable}_TESTS})
      set(name ${test}_on_${value})
      gdn_test(NAME ${name} PROGRAM on_processor LABEL long TIMEOUT 900 MAY_SKIP ARGUMENTS $<TARGET_FILE:${test}> ${arguments_${test}}
        ENVIRONMENT OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=3 ${variable}=${value})
    endforeach()
  endforeach()
endforeach()
