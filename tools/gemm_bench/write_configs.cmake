# Writes the sources of the CUTLASS configurations, and cutlass_candidates(), to FOLDER. A source has three
# configurations, which compile for about a minute and need 4 GB of memory. Usage: cmake -DFOLDER=... -P
# write_configs.cmake
#
# A configuration: schedule, rows, columns and depth of a tile, rows and columns of a cluster (cutlass_gemm.cuh).
set(forward "Cooperative, 128, 256, 64, 2, 1" "Cooperative, 256, 128, 64, 2, 1" "Cooperative, 128, 208, 64, 1, 1"
            "Cooperative, 128, 128, 64, 1, 1" "Pingpong, 64, 256, 64, 2, 1" "Pingpong, 128, 128, 64, 2, 1"
            "Pingpong, 64, 128, 64, 1, 1" "OneTile, 64, 64, 128, 1, 1")
# The row reduction needs more shared memory than the epilogue of a tile with 208 columns has.
string(REPLACE "128, 208" "128, 192" dgrad "${forward}")
set(wgrad "GroupedCooperative, 128, 256, 64, 2, 1" "GroupedCooperative, 256, 128, 64, 1, 2"
          "GroupedCooperative, 128, 128, 64, 1, 1" "GroupedPingpong, 128, 128, 64, 2, 1"
          "GroupedPingpong, 64, 128, 64, 1, 1" "GroupedPingpong, 64, 64, 128, 1, 1")
set(type_f16 half_t)
set(type_bf16 bfloat16_t)

# Writes the functions collected in `source`, if there are any.
macro(write_source)
  if(source)
    file(CONFIGURE OUTPUT ${FOLDER}/${function}.cu CONTENT "#include \"cutlass_${operator}.cuh\"

namespace hctr::gemm_bench {
${source}}  // namespace hctr::gemm_bench
")
  endif()
  set(source "")
endmacro()

set(declared "")
set(body "")
foreach(operator forward dgrad wgrad)
  foreach(type f16 bf16)
    string(APPEND body "  if (op == Operator::${operator} && type == Type::${type}) {\n")
    set(number 0)
    set(source "")
    foreach(config IN LISTS ${operator})
      math(EXPR number "${number} + 1")
      set(function "cutlass_${operator}_${type}_${number}")
      string(APPEND source "std::unique_ptr<Candidate> ${function}() {
  return cutlass_${operator}<cutlass::${type_${type}}, Config<${config}>>();
}
")
      string(APPEND declared "std::unique_ptr<Candidate> ${function}();\n")
      string(APPEND body "    all.push_back(${function}());\n")
      math(EXPR full "${number} % 3")
      if(full EQUAL 0)
        write_source()
      endif()
    endforeach()
    write_source()
    string(APPEND body "  }\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${FOLDER}/cutlass_candidates.cc CONTENT "#include \"candidate.h\"

namespace hctr::gemm_bench {
${declared}
Candidates cutlass_candidates(Operator op, Type type) {
  Candidates all;
${body}  return all;
}
}  // namespace hctr::gemm_bench
")
