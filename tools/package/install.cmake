# What `cmake --install` copies: programs and plug-ins to bin, completion for bash and zsh, man pages, documents and
# samples. Completion and man pages are made by the programs, from their options.
include(GNUInstallDirs)

set(installed huge_ctr criteo2hugectr data_generator data_inspect feature_spec preprocess table_inspect model_convert)
install(TARGETS ${installed} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(plugin huge_ctr_parquet huge_ctr_mpi)  # the programs look for them where they are
  if(TARGET ${plugin})
    set_target_properties(${plugin} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${plugin} LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/python/hctr_model.py DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/samples DESTINATION ${CMAKE_INSTALL_DATADIR}/huge_ctr USE_SOURCE_PERMISSIONS)

string(JOIN " " programs ${installed})
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  foreach(program ${programs})
    foreach(page \"--completion bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions/\${program}\"
                 \"--completion zsh ${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_\${program}\"
                 \"--man ${CMAKE_INSTALL_MANDIR}/man1/\${program}.1\")
      separate_arguments(words UNIX_COMMAND \"\${page}\")
      list(POP_BACK words file)
      get_filename_component(folder \${root}/\${file} DIRECTORY)
      file(MAKE_DIRECTORY \${folder})
      execute_process(COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/\${program} \${words} OUTPUT_FILE \${root}/\${file} RESULT_VARIABLE failed)
      if(failed)
        message(FATAL_ERROR \"\${program} \${words} failed: \${failed}\")
      endif()
      list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${CMAKE_INSTALL_PREFIX}/\${file})
    endforeach()
  endforeach()
")

set(CPACK_PACKAGE_NAME huge-ctr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains click-through-rate models as a JSON file describes them")
set(CPACK_PACKAGE_CONTACT "huge_ctr")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_DEPENDS libopenblas0)  # loaded by name, which no tool sees
include(CPack)
