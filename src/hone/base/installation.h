// base/installation.h - where the files are that belong to Hone's code: the worker, shipped records
// and libraries that are loaded on demand. They are found from the file that contains the code,
// which is the program `hone` or a libhone.so that any other program has loaded. An installation
// may be moved as a whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Returns the absolute path of the program or shared library that contains this function; "" if
// /proc does not say.
[[nodiscard]] std::string own_file();

// Returns the places where a file of an installation, such as "share/hone/records", may be: below
// the folder above that of own_file() (PREFIX/bin/hone, PREFIX/lib/libhone.so), then below the
// prefix that Hone was configured with. All are absolute paths; the first is left out if own_file()
// is not known.
[[nodiscard]] std::vector<std::string> installed_places(std::string_view relative);

// Returns the path of a file in the folder of own_file(); "" if that is not known.
[[nodiscard]] std::string beside_own_file(std::string_view name);

}  // namespace hone
