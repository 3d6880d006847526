# Writes the files of the report page as C++ string literals to the header OUTPUT. Usage: cmake -DSOURCE=<folder page>
# -DOUTPUT=... -P embed_page.cmake
set(text "#include <string_view>\n\nnamespace hctr::page_files {\n\n")
foreach(part IN ITEMS "kPage page.html" "kStyle style.css" "kChart chart.js" "kSections sections.js")
  separate_arguments(part)
  list(GET part 0 name)
  list(GET part 1 file)
  file(READ ${SOURCE}/${file} content)
  string(APPEND text "inline constexpr std::string_view ${name} = R\"page_file(${content})page_file\";\n\n")
endforeach()
string(APPEND text "}  // namespace hctr::page_files\n")
file(WRITE ${OUTPUT} "${text}")
