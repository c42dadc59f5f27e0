// db/record_arrays.h - records as arrays with a row each, which is how the .npz of a data set
// stores them beside its features (docs/user/dataset.md has the layout). Everything but the id is
// read back exactly.
//
// An array is named record_ and the field. Texts are indices into one table of distinct texts;
// lists are concatenated in one array, with the end of each in another.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "hone/tensor/npy.h"
#include "hone/trial/record.h"

namespace hone::db {

inline constexpr std::string_view kRecordArray = "record_";  // prefix of all names

[[nodiscard]] std::vector<NamedTensor> to_arrays(std::span<const trial::Record> records);
// Reads records as strictly as parse_json_line(): every array must be there, with its type and
// shape, and no other with such a name; every record must pass check(). Arrays with other names are
// ignored.
[[nodiscard]] Result<std::vector<trial::Record>> from_arrays(std::span<const NamedTensor> arrays);

}  // namespace hone::db
