# Writes the header OUTPUT if its content has changed. The header defines HCTR_COMMIT: the commit of the checkout
# SOURCE, or "unknown". Usage: cmake -DSOURCE=... -DOUTPUT=... -P write_commit.cmake
set(commit unknown)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix
                OUTPUT_VARIABLE prefix RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
# if SOURCE is a subfolder of a checkout, the checkout and its commit belong to another project
if(failed EQUAL 0 AND prefix STREQUAL "")
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE described RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0)
    set(commit ${described})
  endif()
endif()
set(text "#define HCTR_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUTPUT} "${text}")
endif()
