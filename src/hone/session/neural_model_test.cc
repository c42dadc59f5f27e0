#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "hone/cost/candidate_features.h"
#include "hone/cost/embedder.h"
#include "hone/cost/fingerprint.h"
#include "hone/cost/net/head.h"
#include "hone/cost/registry.h"
#include "hone/graph/import_onnx.h"
#include "hone/graph/test_model.h"
#include "hone/neural/check_library.h"
#include "hone/neural/compiled_net.h"
#include "hone/neural/restored_net.h"
#include "hone/session/cost_models.h"
#include "hone/session/neural_model_testing.h"

namespace hone {
namespace {

namespace net = cost::net;

TEST(net_file, every_family_computes_the_same_when_it_is_imported) {
  for (const net::Family* family : net::families()) {
    net::Net written = net::make_net(*family, net::small_inputs(), net::narrow(*family)).value();
    net::initialise(written, 3);
    const net::NetBatch batch = net::random_batch(written, 3, 11);
    const std::string bytes = format_net(written, {});
    graph::ImportOptions options;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < written.inputs.size(); ++i) {
      Shape shape = written.inputs[i].dims;
      shape.insert(shape.begin(), batch.rows);
      options.shapes[written.inputs[i].name] = shape;
      inputs.push_back(graph::floats(shape, batch.inputs[i]));
    }
    const Result<graph::Graph> graph =
        graph::import_onnx_bytes(bytes.data(), bytes.size(), "net.onnx", "", options);
    ASSERT_TRUE(graph.ok()) << family->name << ": " << graph.status().message();
    const std::vector<Tensor> found = graph::run_plainly(*graph, inputs);
    const std::vector<std::vector<float>> expected = net::evaluate(written, batch);
    ASSERT_EQ(found.size(), expected.size()) << family->name;
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_LT(graph::relative_error(found[i], graph::floats(found[i].shape(), expected[i])), 1e-4)
          << family->name << " " << written.outputs[i].name;
  }
}

TEST(net_file, gives_its_weights_to_a_net_of_the_same_kind) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("small.onnx");
  net::Net written = small_net();
  written.find_constant("statements.mean")->values[3] = 7;
  ASSERT_TRUE(write_net(path, written, {}).ok());
  const NetFile file = read_net(path).value();
  net::Net read = small_net(4);
  ASSERT_NE(read.parameters[0].values, written.parameters[0].values);
  const Status status = load_weights(file, path, read);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < read.parameters.size(); ++i)
    EXPECT_EQ(read.parameters[i].values, written.parameters[i].values);
  for (size_t i = 0; i < read.constants.size(); ++i)
    EXPECT_EQ(read.constants[i].values, written.constants[i].values);

  const net::Family* family = net::find_family("small").value();
  net::Net wide = net::make_net(*family, net::all_inputs(), {{"hidden", 16}, {"heads", 2}}).value();
  EXPECT_NE(load_weights(file, path, wide).message().find("expected"), std::string::npos);
  net::Net deep =
      net::make_net(*family, net::all_inputs(), {{"hidden", 8}, {"heads", 2}, {"layers", 2}})
          .value();
  EXPECT_EQ(
      load_weights(file, path, deep).message(),
      path + ": has no encoder1.attention.query.weight, expected a small of the same options");
}

// A compiler that is wrong is found out: here by the library of other weights.
TEST(check_library, refuses_what_says_something_else) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("small.onnx");
  const net::Net written = small_net();
  ASSERT_TRUE(write_net(path, written, {}).ok());
  const CompiledNet compiled =
      compile_net(read_net(path).value(), path, folder.path(), net_compiler()).value();
  EXPECT_TRUE(check_library(compiled.path, written).ok());
  const Status other = check_library(compiled.path, small_net(4));
  EXPECT_NE(other.message().find("compiled, the net's score differs by"), std::string::npos)
      << other.message();
}

// A file from before an option was there reads no such input, and goes on as it is.
TEST(net_file, has_the_options_that_it_was_made_with) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("small.onnx");
  const net::Family* family = net::find_family("small").value();
  net::Net before =
      net::make_net(*family, net::all_inputs(), {{"hidden", 8}, {"heads", 2}, {"decisions", 0}})
          .value();
  net::initialise(before, 3);
  ASSERT_TRUE(write_net(path, before, small_card()).ok());
  const NetFile old = read_net(path).value();
  EXPECT_EQ(options_of(old, *family), "hidden=8,heads=2,decisions=0");
  const Result<net::Net> restored = restore_net(old, path);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(restored->num_weights(), before.num_weights());
  ASSERT_TRUE(write_net(path, small_net(), small_card()).ok());
  EXPECT_EQ(options_of(read_net(path).value(), *family), "hidden=8,heads=2");
}

// `hone train` writes down the options that were given, such as none.
TEST(net_file, of_each_family_without_options_is_restored) {
  const TempDir folder = TempDir::create().value();
  for (const net::Family* family : net::families()) {
    SCOPED_TRACE(family->name);
    const std::string path = folder.file("net.onnx");
    net::Net written = net::make_net(*family, net::all_inputs(), {}).value();
    net::initialise(written, 3);
    NetCard card = small_card();
    card.notes["options"] = "";
    ASSERT_TRUE(write_net(path, written, card).ok());
    const NetFile file = read_net(path).value();
    EXPECT_EQ(options_of(file, *family), "");
    const Result<net::Net> restored = restore_net(file, path);
    EXPECT_TRUE(restored.ok()) << restored.status().message();
  }
}

// Only a net that reads decisions looks at their version.
TEST(net_file, of_other_decisions_is_refused) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("small.onnx");
  ASSERT_TRUE(write_net(path, small_net(), small_card()).ok());
  std::string bytes = read_file(path).value();
  const size_t note = bytes.find("hone.decisions");
  ASSERT_NE(note, bytes.npos);
  const std::string known = std::to_string(cost::kCandidateFeatureVersion);
  const size_t version = bytes.find(known, note);
  ASSERT_NE(version, bytes.npos);
  bytes[version] = 'x';
  ASSERT_TRUE(write_file_atomic(path, bytes).ok());
  EXPECT_EQ(read_net(path).status().message(),
            fmt::format("{}: trained for version x of decisions, expected {}: train it anew", path,
                        known));
}

// What a net reads, computed otherwise than when it was trained, and a file that does not say so.
TEST(net_file, of_another_measure_is_refused) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("small.onnx");
  ASSERT_TRUE(write_net(path, small_net(), small_card()).ok());
  const std::string good = read_file(path).value();
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    const size_t at = bytes.find(from);
    EXPECT_NE(at, bytes.npos) << from;
    EXPECT_TRUE(write_file_atomic(path, bytes.replace(at, from.size(), to)).ok());
    return read_net(path).status().message();
  };
  const std::string numbers = cost::fingerprint("statements");
  std::string other = numbers, damaged = numbers;
  other[0] = other[0] == '9' ? '1' : '9';
  damaged[0] = 'x';
  const std::string measure = refused(numbers, other);
  EXPECT_TRUE(measure.starts_with(path + ": trained with other features or another analytic "
                                         "measure than this program has (statements of matmul"))
      << measure;
  EXPECT_EQ(
      refused(numbers, damaged),
      fmt::format("{}: its fingerprint of statements is '{}', expected 12 numbers", path, damaged));
  EXPECT_EQ(refused("hone.file", "home.file"),
            path + ": trained for version (none) of files, expected 2: train it anew");
}

TEST(net_file, names_the_device_of_each_head) {
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("small.onnx");
  const net::Family* family = net::find_family("small").value();
  net::Net written =
      net::make_net(*family, net::all_inputs(), {{"hidden", 8}, {"heads", 2}, {"devices", 2}})
          .value();
  net::initialise(written, 3);
  ASSERT_TRUE(write_net(path, written, {.heads = {"a/1", "b/2"}}).ok());
  EXPECT_EQ(read_net(path)->card.heads, (std::vector<std::string>{"a/1", "b/2"}));
  ASSERT_TRUE(write_net(path, written, {}).ok());
  EXPECT_EQ(read_net(path).status().message(),
            path + ": hone.heads is '', expected 1 to 8 devices");
  ASSERT_TRUE(write_net(path, small_net(), {.heads = {"a/1"}}).ok());
  EXPECT_EQ(read_net(path).status().message(), path + ": hone.heads is 'a/1', expected none");
}

class NeuralModel : public ::testing::Test {
 protected:
  std::unique_ptr<cost::CostModel> make(const NetCard& card = {}) {
    EXPECT_TRUE(write_net(file_, net_, card).ok());
    auto model = make_cost_model({.cost = file_, .db = folder_.file("hone.db")});
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? *std::move(model) : nullptr;
  }
  // What it predicts: what the analytic model says of the default schedule times
  // exp(factor(scores, i)), where the net says `scores`.
  template <typename F>
  std::vector<double> expect_times(const cost::CostModel& model, const Sampled& sampled,
                                   const F& factor) const {
    std::vector<double> seconds = model.predict(sampled.queries).value();
    const std::vector<double> scores = plain_scores(net_, sampled.queries);
    const double level = sampled.default_seconds();
    for (size_t i = 0; i < seconds.size(); ++i)
      EXPECT_NEAR(std::log(seconds[i] / level), factor(scores, i), 1e-4);
    return seconds;
  }
  [[nodiscard]] std::vector<std::string> libraries() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".so") found.push_back(entry.path().string());
    }
    return found;
  }

  TempDir folder_ = TempDir::create().value();
  std::string file_ = folder_.file("small.onnx");
  net::Net net_ = small_net();
};

TEST_F(NeuralModel, predicts_what_its_net_says_of_each_candidate) {
  const auto model = make({.log_seconds_per_score = 0.5});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->name(), "small");
  const Sampled sampled(compute::testing::gemm(64, 48, 32), static_cast<int>(kNetBatch) + 6);
  const std::vector<double> seconds = expect_times(
      *model, sampled, [](const auto& scores, size_t i) { return 0.5 * (scores[0] - scores[i]); });
  // Whatever was asked before and with whichever others, also by several threads at a time.
  std::vector<std::thread> threads;
  std::vector<double> again(seconds.size());
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < again.size(); i += 2)
        again[i] = model->predict({&sampled.queries[i], 1}).value()[0];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(again, seconds);
}

TEST_F(NeuralModel, takes_the_word_of_a_net_that_tells_times) {
  const auto model = make({.tells_time = true});
  ASSERT_NE(model, nullptr);
  const Sampled sampled(compute::testing::gemm(64, 48, 32), static_cast<int>(kNetBatch) + 6);
  expect_times(*model, sampled, [](const auto& scores, size_t i) { return -scores[i]; });
}

TEST_F(NeuralModel, asks_the_head_of_its_device) {
  const net::Family* family = net::find_family("small").value();
  net_ = net::make_net(*family, net::all_inputs(), {{"hidden", 8}, {"heads", 2}, {"devices", 2}})
             .value();
  net::initialise(net_, 3);
  const std::string key = target::device_key(target::host());
  const Sampled sampled(compute::testing::gemm(64, 48, 32), 8);
  const auto seconds = [&](const std::vector<std::string>& heads) {
    return make({.heads = heads})->predict(sampled.queries).value();
  };
  const std::vector<double> first = seconds({key + "/1", "other/1"});
  const std::vector<double> second = seconds({"other/1", key + "/1"});
  const std::vector<double> mean = seconds({"other/1", "other/2"});
  for (size_t i = 1; i < first.size(); ++i) {
    EXPECT_NE(first[i], second[i]);
    EXPECT_NEAR(std::log(mean[i]), (std::log(first[i]) + std::log(second[i])) / 2, 1e-4);
  }
}

// Its embedding of a candidate is what the last layer reads.
TEST_F(NeuralModel, embeds_when_it_was_asked_to) {
  const auto model = make(small_card(0.5));
  ASSERT_NE(model, nullptr);
  const Sampled sampled(compute::testing::gemm(64, 48, 32), static_cast<int>(kNetBatch) + 6);
  const std::vector<double> seconds = model->predict(sampled.queries).value();
  EXPECT_FALSE(cost::embeddings_of(*model, sampled.queries).ok()) << "nobody asked";
  for (int i = 0; i < 2; ++i) {
    const Status started = cost::start_embedding(*model);
    ASSERT_TRUE(started.ok()) << started.message();
  }
  const auto found = cost::embeddings_of(*model, sampled.queries);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), sampled.queries.size());
  const std::vector<float> expected =
      plain_outputs(net::with_head(net_).value(), sampled.queries).back();
  const size_t width = expected.size() / found->size();
  for (size_t i = 0; i < found->size(); ++i) {
    ASSERT_EQ((*found)[i].size(), width);
    for (size_t k = 0; k < width; ++k)
      EXPECT_NEAR((*found)[i][k], expected[i * width + k], 1e-4) << i << " " << k;
  }
  const std::vector<double> again = model->predict(sampled.queries).value();
  for (size_t i = 0; i < seconds.size(); ++i) EXPECT_NEAR(again[i] / seconds[i], 1, 1e-4);
  EXPECT_EQ(cost::start_embedding(*cost::make_model("analytic").value()).message(),
            "cost model 'analytic' has no embedding of schedules, expected FILE.onnx, a net that "
            "hone train wrote");
}

TEST_F(NeuralModel, compiles_once_and_again_when_the_library_is_damaged) {
  ASSERT_NE(make(), nullptr);
  ASSERT_EQ(libraries().size(), 1U);
  const std::string library = libraries()[0];
  const std::string sound = read_file(library).value();
  const auto written = std::filesystem::last_write_time(library);
  ASSERT_NE(make(), nullptr);
  EXPECT_EQ(std::filesystem::last_write_time(library), written);
  std::string damaged = sound;
  damaged[damaged.size() / 2] ^= 1;
  ASSERT_TRUE(write_file_atomic(library, damaged).ok());
  ASSERT_NE(make(), nullptr);
  EXPECT_EQ(read_file(library).value(), sound);
}

TEST_F(NeuralModel, a_library_that_others_may_have_written_is_made_anew) {
  ASSERT_NE(make(), nullptr);
  const std::string library = libraries().at(0);
  const auto mode = [&] {
    struct stat info = {};
    EXPECT_EQ(::stat(library.c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode(), 0600U);
  const auto written = std::filesystem::last_write_time(library);
  ASSERT_EQ(::chmod(library.c_str(), 0660), 0);
  ASSERT_NE(make(), nullptr);
  EXPECT_EQ(mode(), 0600U);
  EXPECT_GT(std::filesystem::last_write_time(library), written);
}

TEST_F(NeuralModel, nothing_is_kept_or_loaded_where_others_may_write) {
  ASSERT_NE(make(), nullptr);
  const std::string library = libraries().at(0);
  ASSERT_TRUE(write_file_atomic(library, "code of somebody else").ok());
  ASSERT_TRUE(write_file_atomic(library + ".sum", "its sum").ok());
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0770), 0);
  const auto model = make();
  ASSERT_NE(model, nullptr);
  const Sampled sampled(compute::testing::gemm(64, 48, 32), 8);
  EXPECT_TRUE(model->predict(sampled.queries).ok());
  EXPECT_EQ(read_file(library).value(), "code of somebody else");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0700), 0);
}

TEST_F(NeuralModel, what_was_checked_is_what_is_loaded) {
  ASSERT_TRUE(write_net(file_, net_, {}).ok());
  for (const bool kept_before : {false, true}) {
    const CompiledNet compiled =
        compile_net(read_net(file_).value(), file_, folder_.path(), net_compiler()).value();
    const std::string sound = read_file(libraries().at(0)).value();
    ASSERT_TRUE(write_file_atomic(libraries().at(0), "code of somebody else").ok());
    EXPECT_TRUE(check_library(compiled.path, net_).ok()) << kept_before;
    ASSERT_TRUE(write_file_atomic(libraries().at(0), sound).ok());
  }
}

TEST_F(NeuralModel, libraries_that_nobody_uses_are_removed) {
  namespace fs = std::filesystem;
  const auto now = fs::file_time_type::clock::now();
  const auto age = [&](const std::string& library, int days) {
    fs::last_write_time(library, now - std::chrono::days(100));
    fs::last_write_time(library + ".sum", now - std::chrono::days(days));
  };
  const auto named = [&](int i) { return folder_.file(fmt::format("hone-net-{:016x}.so", i)); };
  const auto exists = [&](int i) {
    return file_exists(named(i)) && file_exists(named(i) + ".sum");
  };
  for (int i = 0; i < 18; ++i) {
    ASSERT_TRUE(write_file_atomic(named(i), "code").ok());
    ASSERT_TRUE(write_file_atomic(named(i) + ".sum", "sum").ok());
    age(named(i), i < 14 ? 29 : 40 + i);
  }
  const std::string other = folder_.file("hone-net-mine.so");
  ASSERT_TRUE(write_file_atomic(other, "not one of them").ok());
  fs::last_write_time(other, now - std::chrono::days(1000));

  ASSERT_NE(make(), nullptr);  // the 16 used last: itself, 14 of 29 days, and the next
  EXPECT_TRUE(file_exists(other));
  EXPECT_EQ(libraries().size(), 17U);
  for (int i = 0; i < 18; ++i) EXPECT_EQ(exists(i), i < 15) << i;
  EXPECT_FALSE(file_exists(named(16) + ".sum"));

  std::string own;
  for (const std::string& library : libraries()) {
    if (library != other && fs::file_size(library) > 100) own = library;
  }
  age(own, 50);
  ASSERT_NE(make(), nullptr);  // it is used, not written: nothing goes
  EXPECT_EQ(libraries().size(), 17U);
  EXPECT_GT(fs::last_write_time(own + ".sum"), now - std::chrono::days(1));
  for (int i = 18; i < 20; ++i) {  // younger than 30 days: there may be more
    ASSERT_TRUE(write_file_atomic(named(i), "code").ok());
    ASSERT_TRUE(write_file_atomic(named(i) + ".sum", "sum").ok());
  }
  net::initialise(net_, 5);
  ASSERT_NE(make(), nullptr);
  EXPECT_EQ(libraries().size(), 19U);
  EXPECT_FALSE(exists(14));
  EXPECT_TRUE(file_exists(own));
}

TEST_F(NeuralModel, refuses_what_it_was_not_trained_for) {
  const auto message = [&](const std::string& bytes) {
    EXPECT_TRUE(write_file_atomic(file_, bytes).ok());
    const Status status = make_cost_model({.cost = file_}).status();
    EXPECT_FALSE(status.ok());
    return status.message();
  };
  const auto with = [&](const char* key, const char* value) {
    graph::OnnxWriter writer("net", 17);
    writer.note("hone.family", "small");
    writer.note("hone.inputs", std::to_string(cost::kInputVersion));
    if (key) writer.note(key, value);
    return writer.bytes();
  };
  EXPECT_NE(message("nonsense").find("not an ONNX file"), std::string::npos);
  EXPECT_NE(message(graph::OnnxWriter("net", 17).bytes()).find("not a cost model"),
            std::string::npos);
  EXPECT_EQ(
      message(with("hone.features", "0.1")),
      fmt::format("{}: trained for version 0.1 of features, expected 1.2: train it anew", file_));
  EXPECT_NE(message(with(nullptr, "")).find("version (none) of features"), std::string::npos);
  const std::string whole = format_net(net_, {});
  EXPECT_NE(message(whole.substr(0, whole.size() / 2)).find("truncated"), std::string::npos);
  EXPECT_EQ(make_cost_model({.cost = "nowhere/a.onnx"}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hone
