#include "hone/db/record_arrays.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "hone/base/rng.h"
#include "hone/db/json_lines.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

std::vector<trial::Record> samples() {
  trial::Record failed = sample_record(7, 1e-3, false);
  failed.outcome = trial::Outcome::kTimeout;
  failed.message = "no answer within 2 s";
  failed.times.clear(), failed.duel.clear();
  failed.centre = failed.low = failed.high = 0;
  trial::Record bytes = sample_record(8, 2e-3);
  bytes.message = std::string("\0\xff", 2);  // more than JSON can hold
  bytes.seed = 0;
  use_algorithm(bytes, "winograd_4_bf16");
  return {sample_record(0x8000000000000001ULL, 1.0 / 3e3), odd_record(), failed, bytes};
}

NamedTensor& array(std::vector<NamedTensor>& arrays, const std::string& name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const NamedTensor& one) { return one.name == name; });
  HONE_ASSERT(found != arrays.end(), "the test knows the names");
  return *found;
}

// Returns the error of reading arrays of which one was changed.
std::string message(const std::string& name, const std::function<void(NamedTensor&)>& change) {
  std::vector<NamedTensor> arrays = to_arrays(samples());
  NamedTensor& changed = array(arrays, name);
  changed.tensor = changed.tensor.clone();
  change(changed);
  const Result<std::vector<trial::Record>> records = from_arrays(arrays);
  return records.ok() ? "read" : records.status().message();
}

TEST(record_arrays, records_survive_the_way_through_a_file) {
  const std::vector<trial::Record> records = samples();
  for (const bool compress : {false, true}) {
    const std::string file = format_npz(to_arrays(records), compress).value();
    const std::vector<NamedTensor> arrays = parse_npz(file).value();
    const Result<std::vector<trial::Record>> back = from_arrays(arrays);
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_EQ(back->size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(to_json_line((*back)[i]), to_json_line(records[i]));
      EXPECT_EQ((*back)[i].message, records[i].message);
      EXPECT_EQ((*back)[i].times, records[i].times);
      EXPECT_EQ((*back)[i].bounds.has_value(), records[i].bounds.has_value());
    }
  }
}

TEST(record_arrays, arrays_without_accuracy_have_that_of_the_steps) {
  std::vector<NamedTensor> arrays = to_arrays(samples());
  array(arrays, "record_accuracy").name = "other";
  const Result<std::vector<trial::Record>> back = from_arrays(arrays);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ((*back)[0].accuracy, trial::Accuracy::kStrict);
  EXPECT_EQ((*back)[3].accuracy, trial::Accuracy::kFast);
}

TEST(record_arrays, figures_of_code_are_there_if_one_record_has_them) {
  std::vector<trial::Record> records = samples();
  for (const NamedTensor& one : to_arrays(records)) EXPECT_NE(one.name, "record_registers");
  records[1].code = sample_code();
  std::vector<NamedTensor> arrays = to_arrays(records);
  EXPECT_EQ(array(arrays, "record_registers").tensor.size(), 4);
  const Result<std::vector<trial::Record>> back = from_arrays(arrays);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ((*back)[1].code, records[1].code);
  EXPECT_FALSE((*back)[0].code.has_value());
  array(arrays, "record_barriers").name = "other";
  EXPECT_EQ(from_arrays(arrays).status().message(),
            "there is no array 'record_barriers', expected i64 [4]");
}

TEST(record_arrays, a_text_is_there_once) {
  const std::vector<trial::Record> records(100, sample_record(1, 1e-3));
  std::vector<NamedTensor> arrays = to_arrays(records);
  EXPECT_EQ(array(arrays, "record_steps").tensor.size(), 100);
  EXPECT_LT(array(arrays, "record_texts_end").tensor.size(), 20);
  EXPECT_EQ(array(arrays, "record_times").tensor.size(), 300);
}

TEST(record_arrays, what_is_wrong_with_an_array_is_said) {
  const auto drop = [](NamedTensor& one) { one.name = "other"; };
  EXPECT_EQ(message("record_task", drop), "there is no array 'record_task', expected u64 [any]");
  EXPECT_EQ(message("record_seed", drop), "there is no array 'record_seed', expected u64 [4]");
  EXPECT_EQ(message("record_duel", drop), "there is no array 'record_duel', expected f64 [any]");
  EXPECT_EQ(message("record_texts", drop), "there is no array 'record_texts', expected u8 [any]");
  EXPECT_EQ(
      message("record_drift", [](NamedTensor& one) { one.tensor = Tensor(DType::kF32, {4}); }),
      "array 'record_drift': found f32 [4], expected f64 [4]");
  EXPECT_EQ(
      message("record_threads", [](NamedTensor& one) { one.tensor = Tensor(DType::kI32, {3}); }),
      "array 'record_threads': found i32 [3], expected i32 [4]");
  EXPECT_EQ(message("record_threads",
                    [](NamedTensor& one) {
                      one.tensor = one.tensor.reshaped({4, 1});
                    }),
            "array 'record_threads': found i32 [4, 1], expected i32 [4]");
  EXPECT_EQ(message("record_task", [](NamedTensor& one) { one.tensor = Tensor(DType::kU64, {0}); }),
            "array 'record_task': found no records");
  std::vector<NamedTensor> arrays = to_arrays(samples());
  arrays.push_back({"record_colour", Tensor(DType::kF64, {4})});
  EXPECT_EQ(from_arrays(arrays).status().message(), "array 'record_colour' is unknown");
  arrays.back().name = "features";
  EXPECT_TRUE(from_arrays(arrays).ok());
}

TEST(record_arrays, what_is_wrong_with_a_value_is_said) {
  const auto set = [](int64_t at, double value) {
    return [at, value](NamedTensor& one) { one.tensor.set(at, value); };
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message("record_times", set(3, kNan)),
            "record 1: a record has the time nan, expected a positive one");
  EXPECT_EQ(message("record_centre", set(0, kNan)),
            "record 0: a successful record has the centre nan, expected a positive time");
  EXPECT_EQ(message("record_host_load", set(2, kNan)),
            "record 2: a record has a number that is not finite");
  EXPECT_EQ(message("record_core_bound", set(1, 0.5)),
            "record 1: a record's bounds have no source");
  EXPECT_NE(message("record_steps", set(2, 1000)).find("array 'record_steps', row 2: found 1000, "),
            std::string::npos);
  EXPECT_NE(message("record_model", set(0, -1)).find("array 'record_model', row 0: found -1, "),
            std::string::npos);
  EXPECT_NE(message("record_accuracy", set(3, 0)).find("expected strict, default or fast"),
            std::string::npos);
  EXPECT_NE(message("record_outcome", set(3, 0)).find("expected an outcome such as ok"),
            std::string::npos);
  EXPECT_EQ(message("record_times_end", set(0, 99)),
            "array 'record_times_end': found the end 99 behind 0, expected rising ends up to 9");
  EXPECT_EQ(message("record_times_end", set(1, 2)),
            "array 'record_times_end': found the end 2 behind 3, expected rising ends up to 9");
  EXPECT_EQ(message("record_times_end", set(3, 8)),
            "array 'record_times_end': the last end is 8, expected 9, the length of "
            "'record_times'");
  EXPECT_NE(message("record_texts_end", set(0, -5)).find("found the end -5 behind 0"),
            std::string::npos);
}

TEST(record_arrays, a_changed_byte_gives_records_or_an_error) {
  Rng rng(5);
  const std::vector<NamedTensor> arrays = to_arrays(samples());
  for (size_t place = 0; place < arrays.size(); ++place) {
    for (int turn = 0; turn < 50; ++turn) {
      std::vector<NamedTensor> changed = arrays;
      Tensor tensor = arrays[place].tensor.clone();
      static_cast<uint8_t*>(tensor.data())[rng.below(tensor.bytes())] ^=
          static_cast<uint8_t>(1 + rng.below(255));
      changed[place].tensor = tensor;
      const Result<std::vector<trial::Record>> records = from_arrays(changed);
      if (!records.ok()) {
        EXPECT_EQ(records.status().code(), Code::kInvalid);
        continue;
      }
      for (const trial::Record& record : *records) EXPECT_TRUE(check(record).ok());
    }
  }
}

}  // namespace
}  // namespace hone::db
