// Tasks run one after another on a thread of their own.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace numgate {

class TaskQueue {
 public:
  explicit TaskQueue(std::size_t backlog) : backlog_(backlog), thread_([this] { work(); }) {}
  ~TaskQueue() {
    finish([this] { tasks_.clear(); });
  }
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Waits while `backlog` tasks are waiting. Rethrows what a task threw; no later task runs.
  void push(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < backlog_ || error_; });
    if (error_) std::rethrow_exception(error_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  // Waits until all is done; no push may follow. Rethrows what a task threw.
  void wait() {
    finish([] {});
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class First>
  void finish(First first) {
    {
      const std::lock_guard lock(mutex_);
      first();
      closed_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !tasks_.empty() || closed_; });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        changed_.notify_all();
      }
      try {
        task();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
        tasks_.clear();
        closed_ = true;
        changed_.notify_all();
      }
    }
  }

  const std::size_t backlog_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::exception_ptr error_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace numgate
