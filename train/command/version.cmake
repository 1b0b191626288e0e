# Writes OUTPUT, a header that defines GDN_COMMIT for the source tree SOURCE; touches it only where it changes.
# Run at every build: cmake -DSOURCE=… -DOUTPUT=… -P version.cmake
set(commit "unknown")
find_program(git git)
if(git)
  # A tree unpacked inside somebody else's repository must not name that repository's commit.
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH "${SOURCE}" source)
  if(top STREQUAL source)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 --verify HEAD OUTPUT_VARIABLE head RESULT_VARIABLE failed
      ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE} status --porcelain OUTPUT_VARIABLE changes ERROR_QUIET)
      if(changes)
        string(APPEND head "+")
      endif()
      set(commit "${head}")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define GDN_COMMIT \"${commit}\"\n")
