#include "hone/search/policy_state.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/cost/fingerprint.h"
#include "hone/trial/schedule_version.h"

namespace hone::search {
namespace {

std::unique_ptr<Policy> policy(std::string_view text) {
  return std::move(make_policy(text)).value();
}

target::Target device(const char* name) { return target::find(name).value(); }

// The text with another one in place of the first `from`, and its hash.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  if (at != text.npos) text.replace(at, from.size(), to);
  const size_t hash = text.find("\nhash ") + 6, rest = text.find('\n', hash) + 1;
  return text.replace(hash, 16, fmt::format("{:016x}", hash_string(text.substr(rest))));
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::string path = folder.file("state");
  std::unique_ptr<Policy> learned = policy("mixed:recall=1");
  const target::Target avx2 = device("x86-64-avx2");
  const std::string body = "analytic conv2d direct lanes=8 0.5 0.01\n";
  std::string written;  // the state of `learned`
  Fixture() {
    EXPECT_TRUE(learned->load(body).ok());
    EXPECT_TRUE(save_policy_state(path, avx2, *learned).ok());
    written = text();
  }
  [[nodiscard]] std::string text() const { return read_file(path).value(); }
  [[nodiscard]] Status load(std::string_view contents, std::string_view strategy) {
    std::ofstream(path, std::ios::binary) << contents;
    const std::unique_ptr<Policy> other = policy(strategy);
    const Status status = load_policy_state(path, avx2, *other);
    EXPECT_EQ(other->save().value(), status.ok() ? body : "");
    return status;
  }
  // Returns why the state cannot be read once its first `from` is `to` and its hash is right.
  [[nodiscard]] std::string refusal(std::string_view from, std::string_view to) {
    return load(replaced(written, from, to), "mixed:recall=1").message();
  }
};

constexpr std::string_view kAnew = ": train it anew (hone policy train)";

TEST(policy_state, is_read_as_it_was_written) {
  Fixture f;
  const std::string text = f.text();
  EXPECT_TRUE(text.starts_with("hone policy state 2\nhash "));
  EXPECT_NE(text.find("\nstrategy mixed\ninstructions x86_64 with 256 bits\nspace "), text.npos);
  EXPECT_TRUE(text.ends_with(f.body));
  EXPECT_TRUE(f.load(text, "mixed:recall=0.5").ok());
}

// Every policy that learns keeps what it was trained for, whatever its own lines are.
TEST(policy_state, of_another_instruction_set_is_refused) {
  Fixture f;
  struct Case {
    const char *trained_on, *trained_for, *used_on, *expected;
  };
  constexpr Case kCases[] = {
      {"x86-64-avx512", "x86_64 with 512 bits", "x86-64-avx2", "x86_64 with 256 bits"},
      {"x86-64-avx2", "x86_64 with 256 bits", "x86-64-avx512", "x86_64 with 512 bits"},
      {"neoverse-n1", "aarch64 with 128 bits", "x86-64-avx2", "x86_64 with 256 bits"},
      {"x86-64-avx2", "x86_64 with 256 bits", "cuda-sm_90a", "GPUs by CUDA"},
      {"cuda-sm_90a", "GPUs by CUDA", "x86-64-avx2", "x86_64 with 256 bits"}};
  for (const std::string_view strategy : {"dqn", "mixed:recall=1", "evolutionary:recall=1"}) {
    for (const auto& [trained_on, trained_for, used_on, expected] : kCases) {
      const std::unique_ptr<Policy> of_one = policy(strategy), of_other = policy(strategy);
      ASSERT_TRUE(save_policy_state(f.path, device(trained_on), *of_one).ok());
      EXPECT_TRUE(load_policy_state(f.path, device(trained_on), *of_other).ok());
      const std::string before = f.text();
      const Status status = load_policy_state(f.path, device(used_on), *of_other);
      EXPECT_EQ(status.message(),
                fmt::format("{}: trained for {}, expected {} for device {}: train it there (hone "
                            "policy train)",
                            f.path, trained_for, expected, used_on));
      EXPECT_EQ(f.text(), before);
    }
  }
}

// Processors with the same instruction set share states.
TEST(policy_state, is_read_on_another_processor_with_the_same_vectors) {
  Fixture f;
  const std::unique_ptr<Policy> other = policy("mixed:recall=1");
  ASSERT_TRUE(save_policy_state(f.path, device("neoverse-n1"), *f.learned).ok());
  EXPECT_TRUE(load_policy_state(f.path, device("cortex-a72"), *other).ok());
}

TEST(policy_state, of_another_space_or_of_other_features_is_refused) {
  Fixture f;
  EXPECT_EQ(f.refusal(fmt::format("\nspace {}\n", kScheduleVersion), "\nspace 0.0\n"),
            fmt::format("{}: trained for version 0.0 of the space of schedules, expected {}{}",
                        f.path, kScheduleVersion, kAnew));
  const std::string features = cost::features_line(cost::FeatureSet::kCombined);
  EXPECT_EQ(f.refusal(features, "features 12 of version 0"),
            fmt::format("{}: trained for 'features 12 of version 0', expected '{}'{}", f.path,
                        features, kAnew));
  for (const std::string& part : cost::fingerprint_parts(cost::FeatureSet::kCombined)) {
    const std::string start = fmt::format("\nfingerprint {} ", part);
    const std::string numbers = cost::fingerprint(part);
    const std::string other =
        f.refusal(start + numbers, start + "99" + numbers.substr(numbers.find(' ')));
    EXPECT_TRUE(other.starts_with(f.path + ": trained with other features or another analytic "
                                           "measure than this program has"))
        << other;
    EXPECT_TRUE(other.ends_with(kAnew)) << other;
    EXPECT_NE(f.refusal(start, "\n").find("its fingerprint of " + part), std::string::npos);
  }
}

TEST(policy_state, of_an_older_version_says_to_train_it_anew) {
  Fixture f;
  const std::string old = fmt::format("hone policy state 1\nstrategy mixed\nhash {:016x}\n{}",
                                      hash_string(f.body), f.body);
  EXPECT_EQ(f.load(old, "mixed:recall=1").message(),
            fmt::format("{}: found 'hone policy state 1', expected 'hone policy state 2'{}", f.path,
                        kAnew));
  EXPECT_EQ(f.text(), old) << "the file is as it was";
}

TEST(policy_state, without_a_file_nothing_is_known_yet) {
  Fixture f;
  const std::unique_ptr<Policy> fresh = policy("mixed:recall=1");
  EXPECT_TRUE(load_policy_state(f.folder.file("none"), f.avx2, *fresh).ok());
  EXPECT_EQ(fresh->save().value(), "");
  // The state of a policy that knows nothing is written and read, too.
  ASSERT_TRUE(save_policy_state(f.path, f.avx2, *fresh).ok());
  EXPECT_TRUE(load_policy_state(f.path, f.avx2, *fresh).ok());
}

TEST(policy_state, no_damaged_file_is_read) {
  Fixture f;
  const std::string good = f.text();
  for (size_t length = 0; length < good.size(); ++length) {
    const Status status = f.load(good.substr(0, length), "mixed:recall=1");
    ASSERT_FALSE(status.ok()) << length;
    EXPECT_TRUE(status.message().starts_with(f.path + ": it is ")) << status.message();
  }
  for (size_t place = 0; place < good.size(); ++place) {
    std::string bad = good;
    bad[place] = bad[place] == '7' ? '8' : '7';
    EXPECT_FALSE(f.load(bad, "mixed:recall=1").ok()) << place;
  }
  EXPECT_FALSE(f.load(good + "\n", "mixed:recall=1").ok());
}

TEST(policy_state, of_another_strategy_is_refused) {
  Fixture f;
  const Status status = f.load(f.text(), "evolutionary:recall=1");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), f.path +
                                  ": it is the state of search strategy 'mixed', expected one of "
                                  "'evolutionary'");
}

TEST(policy_state, a_policy_that_learns_nothing_says_so) {
  Fixture f;
  for (const std::string_view name : {"random", "mixed", "beam"}) {
    const std::unique_ptr<Policy> none = policy(name);
    for (const Status& status : {load_policy_state(f.path, f.avx2, *none),
                                 load_policy_state(f.folder.file("none"), f.avx2, *none),
                                 save_policy_state(f.path, f.avx2, *none)}) {
      EXPECT_EQ(status.message(),
                fmt::format("search strategy '{}' learns nothing that could be kept, expected dqn "
                            "or one with recall as in mixed:recall=1",
                            name));
    }
  }
  EXPECT_TRUE(f.load(f.text(), "mixed:recall=1").ok()) << "the file is as it was";
}

TEST(policy_state, what_cannot_be_written_is_an_error_that_names_the_file) {
  Fixture f;
  const std::string path = f.folder.file("none/state");
  const Status saved = save_policy_state(path, f.avx2, *f.learned);
  EXPECT_NE(saved.message().find(path), std::string::npos) << saved.message();
  // It is told before the search.
  const Status loaded = load_policy_state(path, f.avx2, *f.learned);
  EXPECT_FALSE(loaded.ok());
  EXPECT_NE(loaded.message().find(path), std::string::npos) << loaded.message();
}

}  // namespace
}  // namespace hone::search
