#include "hone/db/record_arrays.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "hone/db/record_fields.h"

namespace hone::db {
namespace {

constexpr const char* kTexts = "texts";  // the table: bytes of UTF-8, one text after the other

std::string array_name(std::string_view field) { return fmt::format("{}{}", kRecordArray, field); }
std::string end_name(std::string_view field) { return array_name(field) + "_end"; }

template <typename T>
Tensor tensor_of(DType dtype, const std::vector<T>& values) {
  Tensor tensor(dtype, {std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

// A list of any length becomes these arrays.
template <typename T>
struct Lists {
  std::vector<T> values;
  std::vector<int64_t> ends;

  template <typename Range>
  void add(const Range& range) {
    values.insert(values.end(), range.begin(), range.end());
    ends.push_back(std::ssize(values));
  }
  void append_to(std::vector<NamedTensor>& arrays, std::string_view field, DType dtype) const {
    arrays.push_back({array_name(field), tensor_of(dtype, values)});
    arrays.push_back({end_name(field), tensor_of(DType::kI64, ends)});
  }
};

// Called for every field of every record.
class Writer {
 public:
  explicit Writer(size_t rows) : rows_(static_cast<int64_t>(rows)) {}

  void operator()(const char* field, uint64_t value) { set(field, DType::kU64, value); }
  void operator()(const char* field, int64_t value) { set(field, DType::kI64, value); }
  void operator()(const char* field, int32_t value) { set(field, DType::kI32, value); }
  void operator()(const char* field, double value) { set(field, DType::kF64, value); }
  void operator()(const char* field, bool value) { set(field, DType::kBool, value); }
  void operator()(const char* field, const std::string& value) {
    const auto [place, added] = indices_.emplace(value, static_cast<int32_t>(indices_.size()));
    if (added) texts_.add(value);
    (*this)(field, place->second);
  }
  void operator()(const char* field, trial::Outcome value) {
    (*this)(field, std::string(trial::outcome_name(value)));
  }
  void operator()(const char* field, trial::Accuracy value) {
    (*this)(field, std::string(trial::accuracy_name(value)));
  }
  void operator()(const char* field, const std::vector<double>& value) { lists_[field].add(value); }
  void end_row() { ++row_; }

  std::vector<NamedTensor> arrays() {
    std::vector<NamedTensor> arrays;
    for (auto& [field, tensor] : columns_) arrays.push_back({array_name(field), tensor});
    for (const auto& [field, lists] : lists_) lists.append_to(arrays, field, DType::kF64);
    texts_.append_to(arrays, kTexts, DType::kU8);
    return arrays;
  }

 private:
  template <typename T>
  void set(const char* field, DType dtype, T value) {
    auto place = columns_.find(std::string_view(field));
    if (place == columns_.end()) place = columns_.emplace(field, Tensor(dtype, {rows_})).first;
    place->second.as<T>()[static_cast<size_t>(row_)] = value;
  }
  int64_t rows_, row_ = 0;
  std::map<std::string, Tensor, std::less<>> columns_;
  std::map<std::string, Lists<double>, std::less<>> lists_;
  Lists<uint8_t> texts_;
  std::map<std::string, int32_t> indices_;
};

// Returns where the elements of each of `rows` lists end among `size` values.
Result<std::vector<size_t>> read_ends(std::span<const NamedTensor> arrays, std::string_view field,
                                      int64_t rows, int64_t size) {
  HONE_ASSIGN_OR_RETURN(const Tensor tensor,
                        find_array(arrays, end_name(field), DType::kI64, {rows}));
  const std::span<const int64_t> found = tensor.as<int64_t>();
  int64_t before = 0;
  for (const int64_t end : found) {
    if (end < before || end > size)
      return invalid("array '{}': found the end {} behind {}, expected rising ends up to {}",
                     end_name(field), end, before, size);
    before = end;
  }
  if (before != size) {
    return invalid("array '{}': the last end is {}, expected {}, the length of '{}'",
                   end_name(field), before, size, array_name(field));
  }
  return std::vector<size_t>(found.begin(), found.end());
}

// Called for every field of every record; passes over all that comes after an error.
class Reader {
 public:
  explicit Reader(std::span<const NamedTensor> arrays) : arrays_(arrays) {}

  // Returns the number of records.
  Result<int64_t> open() {
    const std::string first = array_name("task");
    HONE_ASSIGN_OR_RETURN(const Tensor task, find_array(arrays_, first, DType::kU64, {-1}));
    rows_ = task.size();
    if (rows_ == 0) return invalid("array '{}': found no records", first);
    HONE_ASSIGN_OR_RETURN(const Tensor bytes,
                          find_array(arrays_, array_name(kTexts), DType::kU8, {-1}));
    HONE_ASSIGN_OR_RETURN(const Tensor ends,
                          find_array(arrays_, end_name(kTexts), DType::kI64, {-1}));
    HONE_ASSIGN_OR_RETURN(text_ends_, read_ends(arrays_, kTexts, ends.size(), bytes.size()));
    const std::span<const uint8_t> all = bytes.as<uint8_t>();
    texts_.assign(all.begin(), all.end());
    used_.insert({array_name(kTexts), end_name(kTexts)});
    return rows_;
  }
  void start_row(int64_t row) { row_ = static_cast<size_t>(row); }
  [[nodiscard]] const Status& status() const { return status_; }

  void operator()(const char* field, uint64_t& to) { get(field, DType::kU64, to); }
  void operator()(const char* field, int64_t& to) { get(field, DType::kI64, to); }
  void operator()(const char* field, int32_t& to) { get(field, DType::kI32, to); }
  void operator()(const char* field, double& to) { get(field, DType::kF64, to); }
  void operator()(const char* field, bool& to) {
    uint8_t byte = 0;
    get(field, DType::kBool, byte);
    to = byte != 0;
  }
  void operator()(const char* field, std::string& to) {
    int32_t index = 0;
    get(field, DType::kI32, index);
    if (!status_.ok()) return;
    const auto place = static_cast<size_t>(index);
    if (index < 0 || place >= text_ends_.size()) {
      status_ = invalid("array '{}', row {}: found {}, but there are {} texts", array_name(field),
                        row_, index, text_ends_.size());
      return;
    }
    const size_t begin = place == 0 ? 0 : text_ends_[place - 1];
    to = texts_.substr(begin, text_ends_[place] - begin);
  }
  void operator()(const char* field, trial::Outcome& to) {
    get_parsed(field, trial::parse_outcome, "an outcome such as ok", to);
  }
  void operator()(const char* field, trial::Accuracy& to) {
    get_parsed(field, trial::parse_accuracy, "strict, default or fast", to);
  }
  void operator()(const char* field, std::vector<double>& to) {
    const Tensor* values = column(field, DType::kF64, -1);
    if (values == nullptr) return;
    auto ends = list_ends_.find(std::string_view(field));
    if (ends == list_ends_.end()) {
      Result<std::vector<size_t>> found = read_ends(arrays_, field, rows_, values->size());
      status_ = found.status();
      if (!found.ok()) return;
      used_.insert(end_name(field));
      ends = list_ends_.emplace(field, std::move(found).value()).first;
    }
    const size_t begin = row_ == 0 ? 0 : ends->second[row_ - 1];
    const auto list = values->as<double>().subspan(begin, ends->second[row_] - begin);
    to.assign(list.begin(), list.end());
  }

  // An array of a record's that no field is in.
  [[nodiscard]] Status check_all_used() const {
    for (const NamedTensor& array : arrays_) {
      if (array.name.starts_with(kRecordArray) && !used_.contains(array.name))
        return invalid("array '{}' is unknown", array.name);
    }
    return ok_status();
  }

 private:
  // None after an error.
  const Tensor* column(const char* field, DType dtype, int64_t rows) {
    if (!status_.ok()) return nullptr;
    const auto known = columns_.find(std::string_view(field));
    if (known != columns_.end()) return &known->second;
    Result<Tensor> tensor = find_array(arrays_, array_name(field), dtype, {rows});
    status_ = tensor.status();
    if (!tensor.ok()) return nullptr;
    used_.insert(array_name(field));
    return &columns_.emplace(field, std::move(tensor).value()).first->second;
  }
  template <typename T>
  void get(const char* field, DType dtype, T& to) {
    if (const Tensor* tensor = column(field, dtype, rows_)) to = tensor->as<T>()[row_];
  }
  // A text that `parse` has a value for.
  template <typename T, typename Parse>
  void get_parsed(const char* field, const Parse& parse, const char* expected, T& to) {
    std::string text;
    (*this)(field, text);
    if (!status_.ok()) return;
    if (const std::optional<T> value = parse(text)) {
      to = *value;
    } else {
      status_ = invalid("array '{}', row {}: found '{}', expected {}", array_name(field), row_,
                        text, expected);
    }
  }

  std::span<const NamedTensor> arrays_;
  int64_t rows_ = 0;
  size_t row_ = 0;
  Status status_;
  std::string texts_;
  std::vector<size_t> text_ends_;
  std::map<std::string, Tensor, std::less<>> columns_;
  std::map<std::string, std::vector<size_t>, std::less<>> list_ends_;
  std::set<std::string> used_;
};

}  // namespace

std::vector<NamedTensor> to_arrays(std::span<const trial::Record> records) {
  Writer writer(records.size());
  const auto write = [&writer](const char* field, const auto& value) { writer(field, value); };
  const bool has_code = std::any_of(records.begin(), records.end(),
                                    [](const trial::Record& r) { return r.code.has_value(); });
  for (const trial::Record& record : records) {
    for_each_field(record, write);
    write(kAccuracyField, record.accuracy);
    const trial::CountedBounds bounds = record.bounds.value_or(trial::CountedBounds());
    for_each_bound(bounds, write);
    const CodeFigures code = record.code.value_or(CodeFigures());
    if (has_code) for_each_figure(code, write);
    writer.end_row();
  }
  return writer.arrays();
}

Result<std::vector<trial::Record>> from_arrays(std::span<const NamedTensor> arrays) {
  Reader reader(arrays);
  HONE_ASSIGN_OR_RETURN(const int64_t rows, reader.open());
  std::vector<trial::Record> records(static_cast<size_t>(rows));
  const auto has = [&](std::string_view field) {
    return std::any_of(
        arrays.begin(), arrays.end(),
        [name = array_name(field)](const NamedTensor& array) { return array.name == name; });
  };
  const bool has_accuracy = has(kAccuracyField), has_code = has(kFiguresField);
  const auto read = [&reader](const char* field, auto& value) { reader(field, value); };
  for (int64_t row = 0; row < rows; ++row) {
    trial::Record& record = records[static_cast<size_t>(row)];
    reader.start_row(row);
    for_each_field(record, read);
    record.accuracy = trial::accuracy_of(record.steps);
    if (has_accuracy) read(kAccuracyField, record.accuracy);
    trial::CountedBounds bounds;
    for_each_bound(bounds, read);
    const bool counted =
        !bounds.source.empty() || bounds.scores.memory != 0 || bounds.scores.core != 0;
    if (counted) record.bounds = std::move(bounds);
    CodeFigures code;
    if (has_code) for_each_figure(code, read);
    if (code != CodeFigures()) record.code = code;
    HONE_RETURN_IF_ERROR(reader.status());
    if (const Status status = check(record); !status.ok())
      return invalid("record {}: {}", row, status.message());
  }
  HONE_RETURN_IF_ERROR(reader.check_all_used());
  return records;
}

}  // namespace hone::db
