# find_package(hone): hone::hone is the library with its headers. It needs no other package to be found.
include("${CMAKE_CURRENT_LIST_DIR}/honeTargets.cmake")
