// One visitor out of several lambdas, for std::visit.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_OVERLOADED_H_
#define QUIRE_CACHE_SERVICE_ENGINE_OVERLOADED_H_

namespace quire {

template <typename... Types>
struct Overloaded : Types... {
  using Types::operator()...;
};

template <typename... Types>
Overloaded(Types...) -> Overloaded<Types...>;

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_OVERLOADED_H_
