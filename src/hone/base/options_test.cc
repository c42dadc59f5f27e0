#include "hone/base/options.h"

#include <gtest/gtest.h>

#include "hone/base/split_options.h"

namespace hone {
namespace {

TEST(options, key_value_splits_at_the_first_equals_sign) {
  EXPECT_EQ(*parse_key_value("input:0=a=b.npy"),
            std::pair(std::string("input:0"), std::string("a=b.npy")));
  for (const char* bad : {"", "=", "a", "a=", "=b"}) {
    EXPECT_EQ(parse_key_value(bad).status().message(),
              fmt::format("found '{}', expected NAME=VALUE", bad));
  }
}

TEST(options, key_values_are_known_and_unique) {
  constexpr std::string_view kKnown[] = {"depth", "rate"};
  EXPECT_TRUE(parse_key_values("", kKnown)->empty());
  const auto values = parse_key_values("rate=0.3,depth=6", kKnown);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->at("depth"), "6");
  EXPECT_EQ(values->at("rate"), "0.3");
  EXPECT_EQ(parse_key_values("deep=6", kKnown).status().message(),
            "unknown option 'deep', expected one of: depth, rate");
  EXPECT_EQ(parse_key_values("rate=1,rate=1", kKnown).status().message(),
            "option 'rate' is given twice");
  EXPECT_FALSE(parse_key_values("rate=1,", kKnown).ok());
  EXPECT_FALSE(parse_key_values(" rate=1", kKnown).ok());
}

TEST(options, options_follow_the_last_colon) {
  const auto split = [](const char* text) {
    const auto [name, options] = split_options(text);
    return std::string(name) + "|" + std::string(options);
  };
  EXPECT_EQ(split("a.model"), "a.model|");
  EXPECT_EQ(split("a:b.model:factor=2,share=1"), "a:b.model|factor=2,share=1");
  EXPECT_EQ(split("a:b.model"), "a:b.model|");
  EXPECT_EQ(split("a=b.model"), "a=b.model|");
  EXPECT_EQ(split(""), "|");
}

TEST(options, durations_have_a_unit) {
  EXPECT_DOUBLE_EQ(*parse_duration("60s"), 60);
  EXPECT_DOUBLE_EQ(*parse_duration("5m"), 300);
  EXPECT_DOUBLE_EQ(*parse_duration("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_duration("1h"), 3600);
  EXPECT_DOUBLE_EQ(*parse_duration("1.5m"), 90);
}

TEST(options, durations_that_are_none) {
  for (const char* bad :
       {"",   "0",    "0s",   "0.0ms", "60",   "s",      "-5s", "+5s", "5 s",   " 5s", "5s ",
        "5S", "5sec", "1e3s", "nans",  "infs", "1.2.3s", ".s",  "5d",  "1m30s", "0x5s"}) {
    const Result<double> duration = parse_duration(bad);
    ASSERT_FALSE(duration.ok()) << bad;
    EXPECT_EQ(duration.status().code(), Code::kInvalid);
    EXPECT_EQ(
        duration.status().message(),
        fmt::format("'{}' is not a duration, expected more than 0 and a unit: 500ms, 60s, 5m or 1h",
                    bad));
  }
  EXPECT_FALSE(parse_duration(std::string(400, '9') + "h").ok());
}

TEST(options, integers_stay_in_their_range) {
  EXPECT_EQ(*parse_int("1", 1, 64), 1);
  EXPECT_EQ(*parse_int("64", 1, 64), 64);
  EXPECT_EQ(*parse_int("-3", -5, 5), -3);
  EXPECT_EQ(*parse_int("9223372036854775807", 0, INT64_MAX), INT64_MAX);
  for (const char* bad :
       {"", "0", "65", "1.0", "1k", "+1", " 1", "1 ", "0x1", "9223372036854775808"}) {
    EXPECT_EQ(parse_int(bad, 1, 64).status().message(),
              fmt::format("found '{}', expected an integer from 1 to 64", bad));
  }
}

TEST(options, reals_in_range) {
  EXPECT_EQ(*parse_real("1e-3", 0, 1), 1e-3);
  EXPECT_EQ(*parse_real("0", 0, 1), 0);
  for (const char* bad : {"", "-0.1", "1.1", "nan", "inf", "1e", "0,5", " 1", "1 "}) {
    EXPECT_EQ(parse_real(bad, 0, 1).status().message(),
              fmt::format("found '{}', expected a number from 0 to 1", bad));
  }
}

TEST(options, shapes_with_either_separator) {
  const std::vector<int64_t> expected = {1, 3, 224, 224};
  EXPECT_EQ(*parse_shape("1x3x224x224"), expected);
  EXPECT_EQ(*parse_shape("1,3,224,224"), expected);
  EXPECT_EQ(*parse_shape("7"), std::vector<int64_t>{7});
}

TEST(options, shapes_that_are_none) {
  for (const char* bad :
       {"", "x", "1x", "x1", "1xx2", "1x,2", "1,2x3", "0x3", "-1x3", "1x 3", "ax3", "1*3",
        "1048576x1048577", "4294967296x4294967296", "99999999999999999999"}) {
    ASSERT_FALSE(parse_shape(bad).ok()) << bad;
    EXPECT_NE(parse_shape(bad).status().message().find(fmt::format("'{}' is not a shape", bad)),
              std::string::npos);
  }
}

TEST(options, bytes_have_units) {
  EXPECT_EQ(*parse_bytes("800K"), 800 << 10);
  EXPECT_EQ(*parse_bytes("64M"), 64 << 20);
  EXPECT_EQ(*parse_bytes("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(*parse_bytes("1"), 1);
  for (const char* bad : {"", "M", "0", "0.5", "-1M", "1 M", "1m", "1MB", "1e3", "9999999999G"}) {
    EXPECT_EQ(
        parse_bytes(bad).status().message(),
        std::string("'") + bad + "' is no number of bytes, expected one such as 800K, 64M or 1.5G");
  }
}

TEST(options, a_key_is_16_digits) {
  EXPECT_EQ(*parse_key("00ff000000000a10"), 0x00ff000000000a10U);
  EXPECT_EQ(*parse_key("ffffffffffffffff"), UINT64_MAX);
  for (const char* bad : {"", "ff", "00FF000000000a10", "00ff000000000a1g", "00ff000000000a10 ",
                          "0x00ff000000000a"}) {
    EXPECT_EQ(parse_key(bad).status().message(),
              std::string("found '") + bad + "', expected a key of 16 hexadecimal digits");
  }
}

}  // namespace
}  // namespace hone
