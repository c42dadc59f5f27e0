#include "limits.h"

#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/database.h"
#include "hone/db/roofline_store.h"
#include "hone/target/target.h"

namespace hone::tool {
namespace {

Roofline sample() {
  return {.cores = 2,
          .flops = {1e11, 2e11},
          .levels = {{1, 32'000, 1, {1e11, 2e11}, {1e11, 2e11}},
                     {0, 0, 2, {1e10, 1e10}, {1e10, 1e10}}}};
}

TEST(limits, the_column_is_there_only_with_figures) {
  const Limits none, some(sample(), 1);
  EXPECT_FALSE(none.known());
  EXPECT_EQ(none.header({"a"}).size(), 1U);
  EXPECT_EQ(none.row({"a"}, {1, "L1"}, 1).size(), 1U);
  EXPECT_EQ(some.header({"a"}).back(), "of limit");
  EXPECT_EQ(some.row({"a"}, {1, "L1"}, 2).back(), "50 % of L1");
  EXPECT_EQ(some.row({"a"}, {1, "L1"}, 0).back(), "-");
  EXPECT_EQ(some.row({"a"}, {}, 1).back(), "-");
}

TEST(limits, data_are_where_they_fit) {
  const auto expect = [](int threads, double flops, double bytes, double seconds,
                         std::string_view what) {
    const Limit limit = Limits(sample(), threads).of(flops, bytes);
    EXPECT_DOUBLE_EQ(limit.seconds, seconds);
    EXPECT_EQ(limit.what, what);
  };
  expect(1, 1e9, 1'000, 1e-2, "compute");
  expect(2, 1e9, 1'000, 5e-3, "compute");
  expect(1, 0, 32'000, 32e-8, "L1");
  expect(1, 0, 64'000, 64e-7, "memory");
  expect(2, 0, 64'000, 32e-8, "L1");
  EXPECT_EQ(Limits().of(1e9, 1e9).seconds, 0);
}

TEST(limits, that_are_unknown_say_how_to_get_them) {
  const auto why = [](const CompileOptions& options) {
    return Limits::load(options).value().why_unknown();
  };
  const Result<TempDir> folder = TempDir::create("limits");
  ASSERT_TRUE(folder.ok());
  const std::string db = folder->file("a.db"), odd = folder->file("my own.db");
  for (const std::string& path : {db, odd})
    ASSERT_TRUE(Database::open(path, Database::Access::kCreate).ok());
  CompileOptions options;
  options.records.db = db;
  EXPECT_EQ(why(options),
            "The limits of the device are not known. Runs after 'hone devices --measure --db " +
                db + "', and pages of this database, show them.");
  options.records.db = odd;
  EXPECT_NE(why(options).find(" --db '" + odd + "''"), std::string::npos);
  ASSERT_TRUE(db::save_roofline(db, target::device_key(target::host()), sample()).ok());
  options.records.db = db;
  EXPECT_EQ(why(options), "");
  options.records.use_db = false;
  EXPECT_NE(why(options).find("--no-db"), std::string::npos);
  options.target.device = "cuda-sm_90a";
  EXPECT_EQ(why(options), "");
  options.target.machine = "grpc://board:5000";
  EXPECT_EQ(why(options), "The limits of machines elsewhere are not measured.");
}

TEST(limits, of_a_gpu_count_with_its_matrix_instructions) {
  const Result<Limits> h100 = Limits::load("", "cuda-sm_90a", 1);
  ASSERT_TRUE(h100.ok()) << h100.status().message();
  ASSERT_TRUE(h100->known());
  TaskSummary product{.least_flops = 2e12, .bytes = 1e8};
  const Limit simt = h100->of(product);
  EXPECT_EQ(simt.what, "compute");
  product.matrix = "f16";
  EXPECT_EQ(h100->of(product).what, "matrix");
  EXPECT_LT(h100->of(product).seconds, simt.seconds / 5);
  product.matrix = "f32";
  EXPECT_GT(h100->of(product).seconds, h100->of(2e12, 1e8, "f16").seconds * 1.5);
  EXPECT_EQ(h100->of(1e3, 1e3).what, "launch");
  EXPECT_EQ(h100->of(1e3, 1e10).what, "memory");
}

TEST(limits, of_several_kernels) {
  Limit sum;
  EXPECT_EQ(sum.share(1), "-");
  sum.add({1, "L2"});
  sum.add({2, "L2"});
  sum.add({});  // one that is not known changes nothing
  EXPECT_EQ(sum.share(4), "75 % of L2");
  sum.add({1, "compute"});
  EXPECT_EQ(sum.share(4), "100 %");
}

TEST(limits, come_from_the_database) {
  const Result<TempDir> folder = TempDir::create("limits");
  ASSERT_TRUE(folder.ok());
  const std::string db = folder->file("a.db");
  const target::Target& host = target::host();
  EXPECT_FALSE(Limits::load(db, "host", 1).ok());  // it was named, so it must be there
  ASSERT_TRUE(db::save_roofline(db, target::device_key(host), sample()).ok());
  EXPECT_DOUBLE_EQ(Limits::load(db, "host", 1)->of(1e11, 0).seconds, 1);
  CompileOptions options;
  options.records.db = db;
  EXPECT_TRUE(Limits::load(options)->known());
  options.target.device = "x86-64-avx2";
  EXPECT_EQ(Limits::load(options)->known(),
            target::device_key(*target::find("x86-64-avx2")) == target::device_key(host));
  options.target.device = "host";
  options.records.use_db = false;
  EXPECT_FALSE(Limits::load(options)->known());
  options.target.device = "cuda-sm_80";
  EXPECT_TRUE(Limits::load(options)->known()) << "a GPU is described";
}

}  // namespace
}  // namespace hone::tool
