/** For programs that take as long as there is data, and are ended with the call or job they belong to: the longest that a timer takes, 24 days. */
export const noLimitMs = 2 ** 31 - 1;
