#include "run_file.h"

#include <gtest/gtest.h>

#include "tuning_run.h"

namespace hone::tool {
namespace {

Json sample() {
  TuningRun run;
  run.spent = TuneSeconds{.measuring = 1};
  run.failures = {{"timeout", 2, "not done"}};
  run.notes = {"A note."};
  run.roofline =
      Roofline{.flops = {1, 1}, .levels = {{0, 0, 1, {1, 1}, {1, 1}}}, .matrix = {{"f16", 2}}};
  run.kernels.resize(1);
  run.kernels[0].task.sizes = {
      {"seq", 2, {{1, "seq=1"}, {8, "seq=8"}}, {{1, 8, "x", {{1e-6, true}, {2e-6, false}}}}}};
  run.kernels[0].parts["2[0]<1"] = {{{"x", 1e-6}, {"y", 3e-6}}, 1};
  for (int i = 0; i < 4; ++i) {
    TrialInfo trial{.outcome = "ok", .seconds = 1e-3 * (1 + i % 2), .verified = true};
    trial.decisions = i % 2 == 0 ? "direct a:lanes=1" : "direct a:lanes=2";
    run.kernels[0].history.add(trial, i, i + 1);
  }
  return to_json(run, {});
}

std::string message(const std::string& text) {
  const Result<Json> run = parse_run("run.json", text);
  return run.ok() ? "" : run.status().message();
}

TEST(run_file, what_was_written_is_read) {
  const Json written = sample();
  EXPECT_EQ(message(written.dump()), "");
  EXPECT_EQ(*parse_run("run.json", written.dump()), written);
}

TEST(run_file, a_file_that_was_cut_anywhere_is_one_error) {
  const std::string text = sample().dump();
  for (size_t length = 0; length < text.size(); length += 7) {
    const std::string found = message(text.substr(0, length));
    EXPECT_TRUE(found.starts_with("run.json: byte ")) << length << ": " << found;
    EXPECT_NE(found.find("cut off"), std::string::npos) << found;
  }
}

TEST(run_file, what_no_run_has_is_one_error) {
  EXPECT_TRUE(message(R"({"x":1e999})").starts_with("run.json: ["));
  EXPECT_EQ(message("{\"x\":" + std::string(1'000'000, '[')),
            "run.json: its values are nested too deeply, expected a file that 'hone tune --report' "
            "wrote");
}

TEST(run_file, every_field_is_asked_for) {
  const Json good = sample();
  const auto without = [&](const Json::json_pointer& object, const std::string& name) {
    Json bad = good;
    bad[object].erase(name);
    return message(bad.dump());
  };
  for (const auto& [name, value] : good.items()) {
    if (name == "limits_unknown") continue;  // older files have none
    const std::string found = without(Json::json_pointer(""), name);
    EXPECT_TRUE(found.starts_with("run.json: it ")) << name << ": " << found;
  }
  for (const auto& [name, value] : good["kernels"][0].items()) {
    const bool is_new = name == "sizes" || name == "parts" || name == "least_flops";
    EXPECT_EQ(without(Json::json_pointer("/kernels/0"), name),
              is_new ? "" : "run.json: it has no kernels[0]." + name);
  }
}

TEST(run_file, flops_that_an_older_file_does_not_say_follow_from_the_limit) {
  Json old = sample();
  Json& kernel = old["kernels"][0];
  kernel.erase("least_flops");
  kernel["flops"] = 100;
  kernel["limit_seconds"] = 20;
  old["roofline"]["flops"] = 2;
  const auto read = [&] {
    return parse_run("run.json", old.dump()).value()["kernels"][0]["least_flops"].get<double>();
  };
  EXPECT_EQ(read(), 100);
  kernel["limit"] = "compute";
  EXPECT_EQ(read(), 40);
  old["roofline"] = nullptr;
  EXPECT_EQ(read(), 100);
}

TEST(run_file, times_of_parts_are_summed_up) {
  const Json part = sample()["kernels"][0]["parts"][0];
  EXPECT_EQ(part, Json({{"part", "2[0]<1"},
                        {"schedules", 2},
                        {"failed", 1},
                        {"seconds", 1e-6},
                        {"largest", 3e-6}}));
}

TEST(run_file, a_wrong_value_is_named) {
  const auto with = [](const char* place, const Json& value) {
    Json bad = sample();
    bad[Json::json_pointer(place)] = value;
    return message(bad.dump());
  };
  EXPECT_EQ(with("/kernels/0/seconds", "x"),
            "run.json: its kernels[0].seconds is a value of type string, expected a number");
  EXPECT_EQ(with("/kernels/0/least_flops", "x"),
            "run.json: its kernels[0].least_flops is a value of type string, expected a number");
  EXPECT_EQ(with("/kernels/0/points/at", Json::array({1})),
            "run.json: its kernels[0].points.trial has 4 numbers, expected 1");
  EXPECT_EQ(with("/curve/at/0", nullptr), "run.json: its curve.at has more than numbers");
  EXPECT_EQ(
      with("/kernels/0/decisions/0/best", 1),
      "run.json: its kernels[0].decisions[0].best is a value of type number, expected a text");
  EXPECT_EQ(with("/kernels/0/sizes/0/points/1/run", 1),
            "run.json: its kernels[0].sizes[0].points[1].run is a value of type number, expected a "
            "text");
  EXPECT_EQ(with("/kernels/0/sizes/0/schedules/0/seconds", Json::array({1})),
            "run.json: its kernels[0].sizes[0].schedules[0].seconds has 1 values, expected 2");
  EXPECT_EQ(with("/kernels/0/sizes/0/schedules/0/measured/1", 1),
            "run.json: its kernels[0].sizes[0].schedules[0].measured has a value of type number, "
            "expected true or false");
  EXPECT_EQ(with("/kernels/0/parts/0/schedules", "x"),
            "run.json: its kernels[0].parts[0].schedules is a value of type string, expected a "
            "number");
  EXPECT_EQ(with("/kernels/0", 1), "run.json: kernels[0] is no object");
  EXPECT_EQ(with("/spent/measuring", "1"), "run.json: its spent.measuring is no number");
  EXPECT_EQ(with("/limits_unknown", 1), "run.json: its limits_unknown is no text");
  EXPECT_EQ(with("/notes/0", 1), "run.json: its notes are not only texts");
  EXPECT_EQ(with("/roofline/levels/0/bandwidth", false),
            "run.json: its roofline.levels[0].bandwidth is a value of type boolean, expected a "
            "number");
  EXPECT_EQ(with("/version", 2),
            "run.json: it has another version than 1: write it again with this version of hone");
  EXPECT_EQ(with("/format", "other"),
            "run.json: it is no run file, expected one that 'hone tune --report' wrote");
  EXPECT_EQ(message("[]"), message("{}"));
}

}  // namespace
}  // namespace hone::tool
