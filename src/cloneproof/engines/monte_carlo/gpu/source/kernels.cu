// The kernels: one thread plays one run after the other. KERNEL says which, ARMS how many arms flat UCB has, THREADS
// how many threads a block has, and SHARED whether a run's memory lies in shared memory.
//
// Compiled as C++ there is one thread, and `play` takes the kernel and the number of arms as arguments.
#include "flat_ucb.h"
#include "randomised.h"
#include "ucb.h"

#define FLAT_UCB 0
#define ANY_UCB 1
#define THOMPSON 2
#define GREEDY 3

#ifdef __CUDACC__

extern "C" __global__ void __launch_bounds__(THREADS) play(const Plan* plans, i64 runs, u64* memory) {
    extern __shared__ u64 shared[];
#if KERNEL == THOMPSON
    u64* own = shared + 772 + THREAD;  // after the ziggurat, 771 numbers
    for (u32 i = THREAD; i < 771; i += THREADS) ((double*)shared)[i] = plans->ziggurat[i];
    BARRIER;
    Ziggurat z = {(double*)shared, (double*)shared + 514};
#else
    u64* own = shared + THREAD;
#endif
    for (i64 at = (i64)BLOCK * THREADS + THREAD; at < runs; at += (i64)BLOCKS * THREADS) {
        Run run = run_of(plans, at);
#if KERNEL == FLAT_UCB
        FlatMemory m = {own, own + ARMS * THREADS, own + 2 * ARMS * THREADS,
                              (u32*)(shared + 3 * ARMS * THREADS) + THREAD};
        play_flat_ucb<ARMS>(run, m);
#else
#if SHARED
        Slots all = {own, THREADS};
#else
        Slots all = {memory + (u64)BLOCK * THREADS + THREAD, (u64)BLOCKS * THREADS};
#endif
#if KERNEL == ANY_UCB
        play_ucb(run, all);
#elif KERNEL == THOMPSON
        play_thompson(run, all, z);
#else
        play_greedy(run, all);
#endif
#endif
    }
}

#else

template <int COUNT> static void play_flat(int arms, const Run& run, u64* memory) {
    if (arms == COUNT) {
        FlatMemory m = {memory, memory + COUNT, memory + 2 * COUNT, (u32*)(memory + 3 * COUNT)};
        play_flat_ucb<COUNT>(run, m);
    } else if constexpr (COUNT > 1) {
        play_flat<COUNT - 1>(arms, run, memory);
    }
}

extern "C" void play(int kernel, int arms, const Plan* plans, i64 runs, u64* memory) {
    Slots all = {memory, 1};
    for (i64 at = 0; at < runs; ++at) {
        Run run = run_of(plans, at);
        if (kernel == FLAT_UCB) {
            play_flat<16>(arms, run, memory);
        } else if (kernel == ANY_UCB) {
            play_ucb(run, all);
        } else if (kernel == THOMPSON) {
            Ziggurat z = {plans->ziggurat, plans->ziggurat + 514};
            play_thompson(run, all, z);
        } else {
            play_greedy(run, all);
        }
    }
}

#endif
