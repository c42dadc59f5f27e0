// Against a real server, whose URI is in HONE_TEST_POSTGRES (tests/postgres_test.py starts one).
#include <sys/wait.h>

#include <thread>

#include "hone/db/copy.h"
#include "hone/db/json_lines.h"
#include "hone/db/postgres.h"
#include "hone/db/postgres_schema.h"
#include "hone/db/registry.h"
#include "hone/db/roofline_store.h"
#include "hone/db/sensitivity_store.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

std::string uri() {
  const char* text = std::getenv("HONE_TEST_POSTGRES");
  return text == nullptr ? "postgres://nowhere.invalid/none" : text;
}

std::unique_ptr<Store> open(const StoreOptions& options = {}) {
  auto store = open_store(uri(), options);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return store.ok() ? *std::move(store) : nullptr;
}

std::unique_ptr<Store> open_empty() {
  auto store = open();
  if (!store) return store;
  std::vector<int64_t> ids;
  const auto all = store->query({});
  EXPECT_TRUE(all.ok()) << all.status().message();
  for (const trial::Record& record : *all) ids.push_back(record.id);
  EXPECT_TRUE(store->remove(ids).ok());
  return store;
}

TEST(postgres_store, gives_back_every_field) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  trial::Record r = sample_record(0x8000000000000001ULL, 1.0 / 3e5);
  r.message = "quote ' and \xc3\xa4 and \\ {,}";
  r.times = {1e-300, 0.1 + 0.2, 1.7976931348623157e308};
  ASSERT_TRUE(store->add(std::vector{r}).ok());
  const auto all = store->query({.with_task_text = true});
  ASSERT_TRUE(all.ok()) << all.status().message();
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(to_json_line(all->front()), to_json_line(r));
  EXPECT_EQ(all->front().times, r.times);
}

TEST(postgres_store, best_and_filters_answer_as_sqlite_does) {
  const auto postgres = open_empty();
  ASSERT_TRUE(postgres);
  const TestFolder folder;
  const auto sqlite = std::move(open_store(folder.file("a.db"))).value();
  std::vector<trial::Record> records;
  for (int i = 0; i < 200; ++i) {
    trial::Record r =
        sample_record(static_cast<uint64_t>(i % 5), 1e-3 * (1 + (i * 37) % 50), i % 3 > 0);
    r.device = i % 7 == 0 ? "other" : r.device;
    r.threads = 1 + i % 2;
    r.version = i % 4 == 0 ? "2" : "1";
    use_algorithm(r, i % 6 == 0 ? "winograd_4" : i % 11 == 0 ? "direct_bf16" : "direct");
    r.model = i % 8 == 0 ? "alexnet" : "resnet18";
    r.kernel_class = i % 5 == 2 ? "pool" : "conv2d";
    records.push_back(r);
  }
  ASSERT_TRUE(postgres->add(records).ok());
  ASSERT_TRUE(sqlite->add(records).ok());
  const auto lines = [](const Result<std::vector<trial::Record>>& found) {
    EXPECT_TRUE(found.ok()) << found.status().message();
    std::string text;
    for (const trial::Record& record : *found) text += to_json_line(record) + "\n";
    return text;
  };
  using trial::Accuracy;
  for (const BestQuery& query :
       {best_of(1, 10), best_of(2, 1), best_of(99, 3),
        BestQuery{1, "avx512-x-2c", 2, "2", "", Accuracy::kDefault, 5},
        BestQuery{1, "avx512-x-2c", 2, "", "winograd_4", Accuracy::kDefault, 5},
        BestQuery{1, "avx512-x-2c", 2, "", "", Accuracy::kStrict, 5},
        BestQuery{1, "avx512-x-2c", 2, "", "", Accuracy::kFast, 5}})
    EXPECT_EQ(lines(postgres->best(query)), lines(sqlite->best(query)));
  const int64_t first = postgres->query({.limit = 1})->front().id;
  for (Filter filter : {Filter{}, Filter{.task = 3, .with_task_text = true},
                        Filter{.kernel_class = "pool", .threads = 1}, Filter{.device = "other"},
                        Filter{.version = "2", .model = "alexnet"}, Filter{.verified_only = true},
                        Filter{.outcome = trial::Outcome::kOk, .limit = 7},
                        Filter{.fastest_only = true}, Filter{.after_id = 100, .limit = 5}}) {
    const std::string expected = lines(sqlite->query(filter));
    filter.after_id += filter.after_id > 0 ? first - 1 : 0;
    EXPECT_EQ(lines(postgres->query(filter)), expected);
  }
}

TEST(postgres_store, a_batch_is_stored_whole_or_not_at_all) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  trial::Record bad = sample_record(2, 1e-3);
  bad.model = "\xff\xfe";  // no UTF-8: the server refuses it
  const auto added = store->add(std::vector{sample_record(1, 1e-3), bad});
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.status().code(), Code::kInvalid);
  EXPECT_TRUE(store->query({})->empty());
  EXPECT_TRUE(store->add(std::vector{sample_record(1, 1e-3)}).ok());  // goes on after that
}

TEST(postgres_store, a_wrong_answer_is_no_best_any_more) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  const auto ids = store->add(std::vector{sample_record(1, 1e-3), sample_record(1, 2e-3, false)});
  ASSERT_TRUE(ids.ok());
  ASSERT_TRUE(store->set_verified((*ids)[0], trial::Outcome::kWrongAnswer, "element 3").ok());
  ASSERT_TRUE(store->set_verified((*ids)[1], trial::Outcome::kOk, "").ok());
  EXPECT_EQ(store->best(best_of(1, 5))->size(), 1U);
  EXPECT_EQ(store->best(best_of(1, 5))->front().id, (*ids)[1]);
  EXPECT_EQ(store->set_verified((*ids)[1] + 1000, trial::Outcome::kOk, "").code(), Code::kNotFound);
  ASSERT_TRUE(store->remove(std::vector{(*ids)[1]}).ok());
  EXPECT_EQ(store->query({})->size(), 1U);
  EXPECT_TRUE(store->verify()->empty());
}

TEST(postgres_store, keeps_what_a_network_has_instead_of_the_fastest) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  trial::Record other = sample_record(1, 2e-3);
  other.steps = "another";
  const auto ids = store->add(std::vector{sample_record(1, 1e-3), other});
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  const std::vector<Choice> choices = {{(*ids)[0], (*ids)[1]}}, none = {{(*ids)[0], (*ids)[0]}};
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(store->choose(7, choices).ok());
    const auto chosen = store->chosen(7);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    ASSERT_EQ(chosen->size(), 1U);
    EXPECT_EQ(chosen->front().best, sample_record(1, 1e-3).steps);
    EXPECT_EQ(chosen->front().record.steps, "another");
    EXPECT_TRUE(store->chosen(8)->empty());
  }
  ASSERT_TRUE(store->choose(7, none).ok());
  EXPECT_TRUE(store->chosen(7)->empty());
  EXPECT_FALSE(store->choose(7, std::vector<Choice>{{(*ids)[0], 999'999}}).ok());
  ASSERT_TRUE(store->choose(7, choices).ok());
  ASSERT_TRUE(store->set_verified((*ids)[1], trial::Outcome::kWrongAnswer, "").ok());
  EXPECT_TRUE(store->chosen(7)->empty());
  ASSERT_TRUE(store->remove(std::vector{(*ids)[1]}).ok());
}

TEST(postgres_store, a_text_with_a_zero_byte_is_refused_not_cut) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  trial::Record bad = sample_record(1, 1e-3);
  bad.steps = std::string("a\0b", 3);
  const auto added = store->add(std::vector{bad});
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.status().code(), Code::kInvalid);
  EXPECT_NE(added.status().message().find("stores no text with a zero byte"), std::string::npos);
  EXPECT_TRUE(store->query({})->empty());
}

TEST(postgres_store, a_newer_format_is_refused_and_left_alone) {
  ASSERT_TRUE(open());
  auto db = PostgresConnection::open(uri());
  ASSERT_TRUE(db.ok()) << db.status().message();
  ASSERT_TRUE((*db)->run_all("UPDATE hone_version SET version = 99").ok());
  for (const bool read_only : {false, true}) {
    const auto store = open_store(uri(), {.read_only = read_only});
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), Code::kUnsupported);
    EXPECT_NE(store.status().message().find("has format version 99, this hone knows up to"),
              std::string::npos);
  }
  ASSERT_TRUE(
      (*db)
          ->run_all(fmt::format("UPDATE hone_version SET version = {}", kPostgresVersion).c_str())
          .ok());
  EXPECT_TRUE(open());
}

// In a schema of its own, which is all that its connections see.
TEST(postgres_store, an_empty_database_gets_its_tables_only_when_it_may) {
  auto db = PostgresConnection::open(uri());
  ASSERT_TRUE(db.ok()) << db.status().message();
  ASSERT_TRUE((*db)->run_all("DROP SCHEMA IF EXISTS fresh CASCADE; CREATE SCHEMA fresh").ok());
  const std::string fresh = uri() + "&options=-csearch_path%3Dfresh";
  for (const StoreOptions& options : {StoreOptions{.read_only = true}, {.create = false}}) {
    const auto store = open_store(fresh, options);
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), Code::kNotFound);
    EXPECT_NE(store.status().message().find("holds no trials of hone"), std::string::npos);
  }
  const auto store = open_store(fresh);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_TRUE((*store)->add(std::vector{sample_record(1, 1e-3)}).ok());
  EXPECT_EQ((*open_store(fresh, {.read_only = true}))->query({})->size(), 1U);
  ASSERT_TRUE((*db)->run_all("DROP SCHEMA fresh CASCADE").ok());
}

TEST(postgres_store, version_1_is_read_as_it_is_and_brought_up_to_date) {
  auto db = PostgresConnection::open(uri());
  ASSERT_TRUE(db.ok()) << db.status().message();
  ASSERT_TRUE((*db)->run_all("DROP SCHEMA IF EXISTS old CASCADE; CREATE SCHEMA old").ok());
  const std::string old = uri() + "&options=-csearch_path%3Dold";
  const std::string tables = fmt::format("SET search_path = old; {}", kPostgresMigrations[0]);
  ASSERT_TRUE((*db)->run_all(tables.c_str()).ok());
  const char* const trial =
      "INSERT INTO task (key, kernel_class, text) VALUES ('0000000000000001', 'gemm', '');"
      "INSERT INTO device (key) VALUES ('avx512-x-2c');"
      "INSERT INTO trial (task, device, threads, version, algorithm, steps, decisions, outcome, "
      "message, times, centre, low, high, verified, seed, unix_time, host_load, model, drift, "
      "crowned, duel, others, steal) VALUES (1, 1, 2, '1', 'strassen', 'strassen(gemm)', '', 'ok', '', '{1e-3}', "
      "1e-3, 1e-3, 1e-3, 1, '0000000000000007', 5, 0.5, 'm', 1, 0, '{}', 0, 0);"
      "SET search_path = public";
  ASSERT_TRUE((*db)->run_all(trial).ok());
  {
    const auto reader = open_store(old, {.read_only = true});
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    const auto best = (*reader)->best(best_of(1));
    ASSERT_TRUE(best.ok()) << best.status().message();
    EXPECT_FALSE(best->front().bounds.has_value());
    EXPECT_EQ(best->front().accuracy, trial::Accuracy::kDefault);
    BestQuery strict = best_of(1);
    strict.accuracy = trial::Accuracy::kStrict;
    EXPECT_TRUE((*reader)->best(strict)->empty());
    EXPECT_EQ((*reader)->query({.fastest_only = true})->size(), 1U);
  }
  const auto store = open_store(old);
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_TRUE((*store)->add(std::vector{sample_record(1, 1e-3)}).ok());
  const auto all = (*store)->query({});
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].accuracy, trial::Accuracy::kDefault) << "that of its steps";
  EXPECT_FALSE((*all)[0].bounds.has_value());
  EXPECT_EQ((*all)[1].bounds->source, "amd_zen4");
  ASSERT_TRUE((*db)->run_all("DROP SCHEMA old CASCADE").ok());
}

TEST(postgres_store, many_may_find_it_empty_at_once) {
  constexpr int kStores = 4;
  for (int round = 0; round < 5; ++round) {
    auto db = PostgresConnection::open(uri());
    ASSERT_TRUE(db.ok()) << db.status().message();
    ASSERT_TRUE((*db)->run_all("DROP SCHEMA IF EXISTS fresh CASCADE; CREATE SCHEMA fresh").ok());
    std::vector<std::string> messages(kStores);
    std::vector<std::thread> threads;
    for (std::string& message : messages) {
      threads.emplace_back([&message] {
        const auto store = open_store(uri() + "&options=-csearch_path%3Dfresh");
        if (!store.ok()) message = store.status().message();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(messages, std::vector<std::string>(kStores));
    ASSERT_TRUE((*db)->run_all("DROP SCHEMA fresh CASCADE").ok());
  }
}

TEST(postgres_store, a_lock_of_another_program_is_not_waited_for_for_ever) {
  const auto store = open({.busy_timeout_ms = 50});
  ASSERT_TRUE(store);
  auto other = PostgresConnection::open(uri());
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE((*other)->run_all("BEGIN; LOCK TABLE trial").ok());
  const auto added = store->add(std::vector{sample_record(1, 1e-3)});
  ASSERT_FALSE(added.ok());
  EXPECT_NE(added.status().message().find("is locked by another process"), std::string::npos)
      << added.status().message();
  ASSERT_TRUE((*other)->run_all("ROLLBACK").ok());
  EXPECT_TRUE(store->add(std::vector{sample_record(1, 1e-3)}).ok()) << "goes on afterwards";
}

// The connection is cut between two uses, then within one, as a restart of the server does.
TEST(postgres_store, a_lost_connection_is_made_again_but_no_half_batch_goes_on) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  auto other = PostgresConnection::open(uri());
  ASSERT_TRUE(other.ok());
  const char* const cut =
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
      "AND backend_type = 'client backend'";
  ASSERT_TRUE((*other)->run_all(cut).ok());
  ASSERT_TRUE(store->add(std::vector{sample_record(1, 1e-3)}).ok());
  ASSERT_TRUE((*other)->run_all(cut).ok());
  EXPECT_EQ(store->query({})->size(), 1U);

  auto db = PostgresConnection::open(uri());
  ASSERT_TRUE(db.ok());
  {
    auto transaction = PostgresTransaction::begin(**db);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE((*db)->run_all("DELETE FROM trial").ok());
    ASSERT_TRUE((*other)->run_all(cut).ok());
    const auto rest = (*db)->run("DELETE FROM task");
    ASSERT_FALSE(rest.ok());
    EXPECT_NE(rest.status().message().find("lost the connection to database "), std::string::npos);
    EXPECT_FALSE(transaction->commit().ok());
  }
  EXPECT_TRUE((*db)->run("SELECT 1").ok());
  EXPECT_EQ(store->query({})->size(), 1U) << "the lost transaction was rolled back";
}

TEST(postgres_store, verify_names_trials_that_cannot_be_right) {
  const auto store = open_empty();
  ASSERT_TRUE(store);
  const auto ids = store->add(std::vector{sample_record(1, 1e-3), sample_record(1, 2e-3)});
  ASSERT_TRUE(ids.ok());
  auto db = PostgresConnection::open(uri());
  ASSERT_TRUE(db.ok());
  const std::string spoil = fmt::format("UPDATE trial SET times = '{{}}' WHERE id = {}", (*ids)[1]);
  ASSERT_TRUE((*db)->run_all(spoil.c_str()).ok());
  const auto problems = store->verify();
  ASSERT_TRUE(problems.ok());
  EXPECT_EQ(*problems, std::vector{fmt::format("trial {} is ok but has no time", (*ids)[1])});
}

TEST(postgres_store, keeps_the_figures_of_devices) {
  ASSERT_TRUE(open());
  EXPECT_FALSE(load_roofline(uri(), "unknown")->has_value());
  trial::Roofline r = {.cores = 4,
                       .flops = {1.5e11, 2.9e11},
                       .fork_join = {{2, 0.75e-6}, {4, 1.25e-6}},
                       .levels = {{1, 49'152, 1, {4e11, 8e11}, {2e11, 4e11}},
                                  {0, 0, 2, {1e10, 1.5e10}, {8e9, 1.2e10}}},
                       .unix_time = 1'700'000'000,
                       .host_load = 0.25};
  for (const double flops : {2.9e11, 1.0e11 / 3 + 1.5e11}) {  // the second replaces the first
    r.flops.all = flops;
    ASSERT_TRUE(save_roofline(uri(), "avx512-x-2c", r).ok());
    const auto back = load_roofline(uri(), "avx512-x-2c");
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_TRUE(back->has_value());
    EXPECT_EQ(trial::describe(**back), trial::describe(r));
    EXPECT_EQ((*back)->flops.all, flops);
    EXPECT_EQ((*back)->levels.size(), 2U);
    EXPECT_EQ((*back)->levels[0].write.all, 4e11);
    EXPECT_EQ((*back)->unix_time, r.unix_time);
  }
  EXPECT_FALSE(save_roofline(uri(), "", r).ok());
}

TEST(postgres_store, keeps_how_much_the_roles_of_decisions_matter) {
  ASSERT_TRUE(open());
  EXPECT_TRUE(load_sensitivities(uri(), "unknown", 2)->empty());
  std::vector<trial::TaskSensitivity> tasks = {
      {1, "conv2d", "conv2d(oc=8)", 2, 5, {{"column", {0.25, 0.5}}, {"order", {0, 0.1}}}, 0.75}};
  for (const double loss : {0.0, 1.0 / 3}) {  // the second replaces the first
    tasks[0].roles["column"].loss = loss;
    ASSERT_TRUE(save_sensitivities(uri(), "avx512-x-2c", tasks).ok());
    const auto back = load_sensitivities(uri(), "avx512-x-2c", 2);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, tasks);
  }
}

TEST(postgres_store, read_only_refuses_to_write) {
  ASSERT_TRUE(open());
  const auto store = open({.read_only = true});
  ASSERT_TRUE(store);
  const auto added = store->add(std::vector{sample_record(1, 1e-3)});
  ASSERT_FALSE(added.ok());
  EXPECT_NE(added.status().message().find("open for reading only"), std::string::npos);
}

TEST(postgres_store, no_message_shows_a_password) {
  for (const char* bad : {"postgres://me:secret@localhost:1/none", "postgres://me:secret@[oops",
                          "postgres://me:secret@localhost:1/none?nonsense=1"}) {
    const auto store = open_store(bad);
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().message().find("secret"), std::string::npos);
  }
}

// Writers whose batches name the same new tasks in opposite orders: none waits for the other for
// ever, and nothing is lost.
TEST(postgres_store, many_writers_at_once) {
  ASSERT_TRUE(open_empty());
  constexpr int kWriters = 4, kBatches = 20;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto store = open_store(uri());
      bool good = store.ok();
      for (int batch = 0; good && batch < kBatches; ++batch) {
        std::vector<trial::Record> records;
        for (int i = 0; i < 6; ++i) {
          const int task = writer % 2 == 0 ? i : 5 - i;
          records.push_back(sample_record(static_cast<uint64_t>(batch * 10 + task), 1e-3));
        }
        good = (*store)->add(records).ok();
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(open()->query({})->size(), static_cast<size_t>(kWriters * kBatches * 6));
}

}  // namespace
}  // namespace hone::db
