# Finds what Hone needs; a missing one is a single line that names the Debian package.
function(hone_require found package)
  if(NOT ${found})
    message(FATAL_ERROR "missing build dependency: apt-get install ${package}")
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(fmt QUIET)
hone_require(fmt_FOUND libfmt-dev)
if(BUILD_TESTING)
  find_package(GTest QUIET)
  hone_require(GTest_FOUND libgtest-dev)
endif()
