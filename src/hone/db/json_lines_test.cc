#include "hone/db/json_lines.h"

#include <fstream>

#include "hone/base/file.h"
#include "hone/db/copy.h"
#include "hone/db/store_test_support.h"
#include "hone/trial/record_numbers.h"

namespace hone::db {
namespace {

TEST(json_lines, a_record_survives_the_way_there_and_back) {
  for (const trial::Record& record :
       {sample_record(0x8000000000000001ULL, 1.0 / 3e3), odd_record()}) {
    const std::string line = to_json_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const Result<trial::Record> back = parse_json_line(line);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(to_json_line(*back), line);
    EXPECT_EQ(back->task, record.task);
    EXPECT_EQ(back->times, record.times);
    EXPECT_EQ(back->duel, record.duel);
    EXPECT_EQ(back->seed, record.seed);
    EXPECT_EQ(back->message, record.message);
    EXPECT_EQ(back->verified, record.verified);
    EXPECT_EQ(back->bounds.has_value(), record.bounds.has_value());
    EXPECT_EQ(identity(*back), identity(record));
  }
}

TEST(json_lines, the_document_names_every_field) {
  const std::string document = read_file(HONE_SOURCE_DIR "/docs/formats/db_format.md").value();
  const std::string section = document.substr(document.find("\n## JSON lines\n"));
  trial::Record record = sample_record(1, 1e-3);
  record.code = sample_code();
  record.part = sample_part(1, 1e-3).part;
  const std::string line = to_json_line(record);
  size_t fields = 0;
  for (size_t at = line.find("\":"); at != std::string::npos; at = line.find("\":", at + 1)) {
    const size_t begin = line.rfind('"', at - 1) + 1;
    const std::string name = line.substr(begin, at - begin);
    EXPECT_NE(section.find("`" + name + "`"), std::string::npos) << name;
    ++fields;
  }
  EXPECT_EQ(fields, 44U);
}

TEST(json_lines, what_is_wrong_with_a_line_is_said) {
  const std::string good = to_json_line(sample_record(1, 1e-3));
  const auto message = [&good](const std::string& from, const std::string& to) {
    std::string line = good;
    EXPECT_NE(line.find(from), std::string::npos) << from;
    line.replace(line.find(from), from.size(), to);
    const Result<trial::Record> record = parse_json_line(line);
    return record.ok() ? "parsed" : record.status().message();
  };
  EXPECT_EQ(message("\"threads\":2", "\"threads\":\"2\""),
            "field 'threads': expected an integer of 32 bits");
  EXPECT_EQ(message("\"threads\":2", "\"threads\":99999999999"),
            "field 'threads': expected an integer of 32 bits");
  EXPECT_EQ(message("1700000000", "9999999999999999999"),
            "field 'unix_time': expected an integer of 64 bits");
  EXPECT_EQ(message("\"threads\"", "\"thread\""), "there is no field 'threads'");
  EXPECT_EQ(message("\"threads\":2", "\"threads\":0"),
            "a record has 0 threads, expected at least 1");
  EXPECT_EQ(message("\"task\":\"0", "\"task\":\"x"),
            "field 'task': expected 16 hexadecimal digits");
  EXPECT_EQ(message("\"ok\"", "\"fine\""), "field 'outcome': expected an outcome such as ok");
  EXPECT_EQ(message("\"crowned\":true", "\"crowned\":1"),
            "field 'crowned': expected true or false");
  EXPECT_EQ(message("\"drift\":1.25", "\"drift\":null"), "field 'drift': expected a number");
  EXPECT_EQ(message("\"drift\":1.25", "\"drift\":-1.25"),
            "a record has the drift -1.25, expected a positive number");
  EXPECT_EQ(message("\"duel\":[", "\"duel\":[\"\","), "field 'duel': expected a list of numbers");
  EXPECT_EQ(message("\"model\":\"resnet18\"", "\"model\":[]"), "field 'model': expected a text");
  EXPECT_EQ(message("{", "{\"more\":1,"), "found 30 fields, expected 29: one is unknown");
  EXPECT_EQ(message("\"core_bound\":0.25,", ""), "there is no field 'core_bound'");
  EXPECT_EQ(message(",\"bounds_source\":\"amd_zen4\"", ""),
            "found 28 fields, expected 26: one is unknown");
  EXPECT_EQ(message("\"core_bound\":0.25", "\"core_bound\":0.75"),
            "a record has the bounds 0.375 and 0.75, expected shares of one whole");
  EXPECT_EQ(message("\"strict\"", "\"rough\""),
            "field 'accuracy': expected strict, default or fast");
  EXPECT_EQ(message("\"strict\"", "\"fast\""),
            "a record has the accuracy fast, but its steps need strict");
  EXPECT_EQ(message("}", ""), "expected a JSON object");
  EXPECT_EQ(message("}", ",\"registers\":1}"), "there is no field 'stack_bytes'");
  EXPECT_EQ(message("}", ",\"barriers\":1}"), "found 30 fields, expected 29: one is unknown");
}

TEST(json_lines, figures_of_code_are_there_if_they_are_known) {
  trial::Record record = sample_record(1, 1e-3);
  const std::string without = to_json_line(record);
  EXPECT_EQ(without.find("registers"), std::string::npos);
  record.code = sample_code();
  const std::string line = to_json_line(record);
  const Result<trial::Record> back = parse_json_line(line);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->code, record.code);
  EXPECT_NE(identity(*back), identity(*parse_json_line(without)));
  for (const int64_t wrong : {int64_t{-1}, trial::kMostFigure + 1}) {
    record.code->spill_bytes = wrong;
    EXPECT_NE(parse_json_line(to_json_line(record)).status().message().find(" spill_bytes, "),
              std::string::npos);
  }
}

TEST(json_lines, only_records_of_a_part_say_which) {
  trial::Record record = sample_part(1, 1e-3);
  const Result<trial::Record> back = parse_json_line(to_json_line(record));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->part, record.part);
  record.part.clear();
  EXPECT_EQ(to_json_line(record).find("\"part\""), std::string::npos);
  EXPECT_NE(identity(*back), identity(record));
}

TEST(json_lines, a_line_of_a_release_that_stored_no_accuracy_has_that_of_its_steps) {
  for (const char* algorithm : {"direct", "winograd_4", "direct_bf16"}) {
    trial::Record record = sample_record(1, 1e-3);
    use_algorithm(record, algorithm);
    std::string line = to_json_line(record);
    const std::string field =
        fmt::format(",\"accuracy\":\"{}\"", trial::accuracy_name(record.accuracy));
    ASSERT_NE(line.find(field), std::string::npos) << line;
    line.erase(line.find(field), field.size());
    const Result<trial::Record> back = parse_json_line(line);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->accuracy, record.accuracy);
    EXPECT_EQ(identity(*back), identity(record));
  }
}

TEST(json_lines, a_bad_line_of_a_text_or_a_file_is_named) {
  const std::string good = to_json_line(sample_record(1, 1e-3));
  EXPECT_EQ(parse_json_lines(good + "\n \r\n" + good, "f")->size(), 2U);
  EXPECT_TRUE(parse_json_lines("", "f")->empty());
  const std::string bad = good + "\n\n{\"task\": 1}\n";
  EXPECT_EQ(parse_json_lines(bad, "f").status().message(),
            "f line 3: field 'task': expected 16 hexadecimal digits");
  const TestFolder folder;
  const std::string file = folder.file("trials.jsonl");
  std::ofstream(file) << bad;
  int seen = 0;
  const auto count = [&seen](trial::Record&&) {
    ++seen;
    return ok_status();
  };
  EXPECT_EQ(for_each_json_line(file, count).message(),
            file + " line 3: field 'task': expected 16 hexadecimal digits");
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(for_each_json_line(folder.file("no"), count).code(), Code::kNotFound);
  EXPECT_EQ(for_each_json_line(folder.path(), count).message(),
            "cannot read '" + folder.path() + "': it is a directory, expected a file");
  EXPECT_EQ(for_each_json_line(file, [](trial::Record&&) { return invalid("enough"); }).message(),
            "enough");
}

TEST(json_lines, files_are_read_in_parts) {
  const TestFolder folder;
  const std::string file = folder.file("trials.jsonl");
  const std::string line = to_json_line(sample_record(1, 1e-3));
  const auto count = [&] {
    int seen = 0;
    const Status status = for_each_json_line(file, [&](trial::Record&& record) {
      EXPECT_EQ(to_json_line(record), line);
      ++seen;
      return ok_status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return seen;
  };
  const int lines = (1 << 20) / static_cast<int>(line.size());  // some parts of 256 KiB
  std::ofstream output(file);
  EXPECT_EQ(count(), 0);
  for (int i = 0; i < lines; ++i) output << (i % 3 == 0 ? "\n" : "") << line << "\n";
  output.flush();
  EXPECT_EQ(count(), lines);
  output << line << std::string(1 << 20, ' ') << "\n" << line;  // a long line, and one without end
  output.close();
  EXPECT_EQ(count(), lines + 2);
}

TEST(json_lines, a_line_without_end_is_an_error) {
  const TestFolder folder;
  const std::string file = folder.file("trials.jsonl");
  std::ofstream(file) << to_json_line(sample_record(1, 1e-3)) << "\n{";
  std::filesystem::resize_file(file, int64_t{1} << 32);
  const Status status = for_each_json_line(file, [](trial::Record&&) { return ok_status(); });
  EXPECT_EQ(status.message(), file + " line 2: it has more than 67108864 bytes, expected a record");
}

}  // namespace
}  // namespace hone::db
