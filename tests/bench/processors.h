// Which processor the sides of a round trip run on.
#ifndef QUIRE_TESTS_BENCH_PROCESSORS_H_
#define QUIRE_TESTS_BENCH_PROCESSORS_H_

#include <sched.h>
#include <sys/types.h>

#include <initializer_list>

namespace quire::bench {

// As long as it lives, the calling thread and those that it starts run on one processor and the
// processes `apart` on another one. Where the kernel happens to put them decides more about a round
// trip than what they do, and it may put two servers that are compared in different ways. Without a
// second processor nothing happens.
class Processors {
 public:
  explicit Processors(std::initializer_list<pid_t> apart);
  ~Processors();
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_PROCESSORS_H_
