#include "hone/remote/remote_machine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "hone/backend/registry.h"
#include "hone/base/file.h"

namespace hone::remote {
namespace {

constexpr int64_t kFloats = 256;

// hone-serve on the loopback interface. Its port stays the same when it is started again.
class Server {
 public:
  explicit Server(std::string token_file) : token_file_(std::move(token_file)) { start(); }
  ~Server() { kill(); }
  void start() {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::string port = std::to_string(port_);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execl(HONE_SERVE, "hone-serve", "--port", port.c_str(), "--token-file", token_file_.c_str(),
            nullptr);
      _exit(127);
    }
    close(ends[1]);
    std::string line;
    for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    close(ends[0]);
    ASSERT_EQ(std::sscanf(line.c_str(), "measures for tuners at grpc://127.0.0.1:%d", &port_), 1)
        << line;
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] MachineAddress address() const {
    MachineAddress address{.name = "board", .connect = {}, .wait_seconds = 10};
    address.connect.address = fmt::format("127.0.0.1:{}", port_);
    address.connect.token = read_token(token_file_).value();
    return address;
  }

 private:
  std::string token_file_;
  int port_ = 0;
  pid_t pid_ = -1;
};

class RemoteMachineTest : public testing::Test {
 protected:
  // A kernel that doubles its input; the output is expected to be `factor` times the input.
  measure::Job job(uint64_t id, double factor) {
    const auto in = ir::make_buffer("in", DType::kF32, {kFloats});
    const auto out = ir::make_buffer("out", DType::kF32, {kFloats});
    const auto i = ir::make_var("i");
    const ir::Expr x = ir::load(in, {ir::variable(i)});
    const ir::Program program = {
        "twice",
        {{in, ir::Role::kInput}, {out, ir::Role::kOutput}},
        {{ir::make_for(i, ir::constant(0), ir::constant(kFloats), ir::ForKind::kSerial,
                       {ir::make_store(out, {ir::variable(i)}, x + x)})}}};
    std::vector<float> numbers;
    measure::Expected expected{.operand = 1};
    for (int64_t k = 0; k < kFloats; ++k) {
      numbers.push_back(static_cast<float>(k));
      expected.values.push_back(factor * static_cast<double>(k));
    }
    constexpr int64_t kBytes = 4 * kFloats;
    const measure::OperandSpec specs[] = {{ir::Role::kInput, kBytes, numbers.data()},
                                          {ir::Role::kOutput, kBytes, nullptr}};
    measure::Job job{.id = id};
    job.executable = backend::compile(program, target::host()).value();
    job.operands = measure::Operands::create(specs, std::vector{expected}).value();
    job.arguments = {{ir::Role::kInput, kBytes, 0}, {ir::Role::kOutput, kBytes, 1}};
    job.tolerance = 1e-6;
    job.timing.max_seconds = 1e-3;
    return job;
  }

  TempDir folder_ = TempDir::create().value();
  Server server_{folder_.file("token")};
};

TEST_F(RemoteMachineTest, is_what_its_server_says) {
  const auto machine = RemoteMachine::open(server_.address()).value();
  EXPECT_EQ(target::describe(machine->target()), target::describe(target::host()));
  EXPECT_TRUE(machine->find_measurable("host").ok());
  EXPECT_EQ(machine->find_measurable("aarch64-neon").status().code(), Code::kUnsupported);
  EXPECT_FALSE(machine->is_elsewhere());
  EXPECT_GT(machine->conditions().load()()->cpu.total, 0);
  EXPECT_FALSE(machine->conditions().core_look(1));
  EXPECT_NE(machine->models().unable(), "");
  EXPECT_EQ(machine->models().time_in_turns({"a.so"}, 1, 1).status().code(), Code::kUnsupported);
  const auto runner = machine->make_runner({}, machine->target());  // which tests itself
  EXPECT_TRUE(runner.ok()) << runner.status().message();
}

TEST_F(RemoteMachineTest, answers_as_a_local_runner_does) {
  const auto machine = RemoteMachine::open(server_.address()).value();
  const auto runner = machine->make_runner({}, machine->target()).value();
  std::vector<measure::Job> jobs;
  for (const uint64_t id : {3, 1, 2, 7, 5, 6}) jobs.push_back(job(id, id == 2 ? 3 : 2));
  ASSERT_TRUE(runner->submit(std::move(jobs)).ok());
  const auto answers = runner->collect().value();
  ASSERT_EQ(answers.size(), 6U);
  const uint64_t ids[] = {3, 1, 2, 7, 5, 6};
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].id, ids[i]);
    EXPECT_EQ(answers[i].outcome, ids[i] == 2 ? trial::Outcome::kWrongAnswer : trial::Outcome::kOk)
        << answers[i].message;
    EXPECT_EQ(answers[i].verified, ids[i] != 2);
  }
  EXPECT_GT(answers[0].timing.centre, 0);
}

TEST_F(RemoteMachineTest, a_server_that_is_started_again_costs_the_job_that_it_measured) {
  const auto machine = RemoteMachine::open(server_.address()).value();
  const auto runner = machine->make_runner({}, machine->target()).value();
  std::vector<measure::Job> jobs;
  for (const uint64_t id : {1, 2, 3}) jobs.push_back(job(id, 2));
  jobs[0].timing = {.min_samples = 1 << 20, .max_samples = 1 << 20, .max_seconds = 8};
  ASSERT_TRUE(runner->submit(std::move(jobs)).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  server_.kill();
  server_.start();
  const auto answers = runner->collect().value();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].outcome, trial::Outcome::kCrash);
  EXPECT_EQ(answers[0].message, "the server was started again while it measured this");
  EXPECT_EQ(answers[1].outcome, trial::Outcome::kOk) << answers[1].message;
  EXPECT_EQ(answers[2].outcome, trial::Outcome::kOk) << answers[2].message;
}

TEST_F(RemoteMachineTest, jobs_that_were_cancelled_have_no_answers) {
  const auto machine = RemoteMachine::open(server_.address()).value();
  const auto runner = machine->make_runner({}, machine->target()).value();
  std::vector<measure::Job> jobs;
  for (const uint64_t id : {1, 2, 3, 4, 5, 6}) jobs.push_back(job(id, 2));
  jobs[0].timing = {.min_samples = 1 << 20, .max_samples = 1 << 20, .max_seconds = 0.3};
  ASSERT_TRUE(runner->submit(std::move(jobs)).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  runner->cancel();
  EXPECT_EQ(runner->collect()->size(), 0U);
  std::vector<measure::Job> more;
  for (const uint64_t id : {7, 8, 9, 10, 11}) more.push_back(job(id, 2));
  ASSERT_TRUE(runner->submit(std::move(more)).ok());
  const auto answers = runner->collect().value();
  ASSERT_EQ(answers.size(), 5U);
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].id, 7 + i);
}

TEST_F(RemoteMachineTest, one_that_does_not_come_back_is_an_error) {
  MachineAddress address = server_.address();
  address.wait_seconds = 0.3;
  const auto machine = RemoteMachine::open(address).value();
  const auto runner = machine->make_runner({}, machine->target()).value();
  server_.kill();
  std::vector<measure::Job> jobs;
  jobs.push_back(job(1, 2));
  (void)runner->submit(std::move(jobs));
  const Status status = runner->collect().status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_TRUE(status.message().starts_with("board: ")) << status.message();
  EXPECT_FALSE(machine->conditions().load()().has_value());
}

TEST_F(RemoteMachineTest, one_that_begins_no_job_is_an_error) {
  const auto busy = RemoteMachine::open(server_.address()).value();
  const auto other = busy->make_runner({}, busy->target()).value();
  std::vector<measure::Job> long_jobs;
  long_jobs.push_back(job(1, 2));
  long_jobs[0].timing = {.min_samples = 1 << 20, .max_samples = 1 << 20, .max_seconds = 3};
  MachineAddress address = server_.address();
  address.queue_seconds = 0.3;
  const auto machine = RemoteMachine::open(address).value();
  const auto runner = machine->make_runner({}, machine->target()).value();
  ASSERT_TRUE(other->submit(std::move(long_jobs)).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<measure::Job> jobs;
  jobs.push_back(job(1, 2));
  (void)runner->submit(std::move(jobs));
  const Status status = runner->collect().status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "board has not begun a job for 0.3 s");
  other->cancel();
}

TEST_F(RemoteMachineTest, a_wrong_token_is_an_error_at_once) {
  MachineAddress address = server_.address();
  address.connect.token += "0";
  const Status status = RemoteMachine::open(address).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(), "board: the token is wrong");
}

}  // namespace
}  // namespace hone::remote
