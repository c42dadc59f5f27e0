// db/record_arrays.h - records as arrays, a row for each: what the .npz of a data set holds beside
// its features (docs/user/dataset.md has the layout). Everything but the id survives the way there
// and back bit by bit.
//
// An array is named record_ and the field. Texts are indices into one table of distinct texts;
// lists lie one after the other in one array, with the end of each in another.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "hone/tensor/npy.h"
#include "hone/trial/record.h"

namespace hone::db {

inline constexpr std::string_view kRecordArray = "record_";  // all names begin so

[[nodiscard]] std::vector<NamedTensor> to_arrays(std::span<const trial::Record> records);
// Strict like parse_json_line(): every array must be there, with its type and shape, and no other
// of such a name; every record must pass check(). Arrays of other names are passed over.
[[nodiscard]] Result<std::vector<trial::Record>> from_arrays(std::span<const NamedTensor> arrays);

}  // namespace hone::db
