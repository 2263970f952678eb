"""The state of each key in Redis, and the scripts that read and write it as one step. `alone` does the same in memory,
and one table of cases holds the two to each other.

A hash a key: `due` and `tokens_due` (when the next call, the next tokens are due), `requests` and `tokens` (limits a
minute, as told), `sure` (told since it is here), `hold` (before it nothing goes out: the provider said so),
`slow`/`slow_until` and the same of tokens, `line` (the end of the line of those who were sent to sleep), `used`; and
`until`, `strikes`, `probe`, `cooled` (left alone until; failures in a row; a probe is out until; left alone since),
which a provider has too. `born` is when the hash was made: after a flush it is another one, and each worker then says
once what it had seen of the old hash (its memory of the key), so that no call is due earlier and nothing is left alone
for less than before. Times are milliseconds of the caller's clock, which is the database's.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "nightshift:manners:"


def key(name: str) -> str:
    return PREFIX + name


_COMMON = """
local now = tonumber(ARGV[1])
local keep = ARGV[2]
local known = {'born', 'due', 'tokens_due', 'line', 'until', 'strikes'}
local function num(v) return tonumber(v or '0') or 0 end
local function memory(key)
  local f = redis.call('hmget', key, unpack(known))
  for at = 1, #known do f[at] = f[at] or '0' end
  return table.concat(f, ' ')
end
local function closed(key, mine)
  local f = redis.call('hmget', key, 'until', 'strikes', 'probe')
  local till, strikes, probe = num(f[1]), num(f[2]), num(f[3])
  if till > now then return till - now, strikes, 1 end
  if strikes > 0 and probe > now and not mine then return math.min(probe - now, 1000), strikes, 3 end
  return 0, strikes, 1
end
"""

# KEYS: the provider, then its keys. ARGV: now, keep, patience, tokens, requests, order, preferred, share, burst, then
# booked, waited, the limits of each key as its worker knows them, then what it remembers of each of KEYS ('' is
# nothing). Requests 0 looks and books nothing; -1 looks for the one whose call is the probe, which another one's would
# shut out. A look for a call that was `booked` at that time says whether it stands: not where the key was left alone
# since; and where the provider said since that nothing is left, for how long it is held back, each call by another
# time, once (`waited`). Answers {place, wait, strikes, requests} or {0, wait, why, strikes}: why 1 is left alone, 2 its
# limit is used up, 3 its probe is out; then what is to be remembered of each of KEYS.
TAKE: Final = (
    _COMMON
    + """
local told = #ARGV - #KEYS
for i = 1, #KEYS do
  local has = redis.call('hget', KEYS[i], 'born')
  if not has then
    has = ARGV[1]
    redis.call('hset', KEYS[i], 'born', has)
    redis.call('pexpire', KEYS[i], keep)
  end
  local seen = {}
  for word in string.gmatch(ARGV[told + i], '%S+') do seen[#seen + 1] = tonumber(word) end
  if #seen > 0 and seen[1] ~= tonumber(has) then
    local last = seen[5] > now - 60000 and 6 or 4
    local f = redis.call('hmget', KEYS[i], unpack(known))
    for at = 2, last do
      if seen[at] > num(f[at]) then redis.call('hset', KEYS[i], known[at], seen[at]) end
    end
  end
end
local function answer(...)
  local found = {...}
  for i = 1, #KEYS do found[#found + 1] = memory(KEYS[i]) end
  return found
end
local patience, tokens, requests = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local order, preferred, share, burst = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local booked, waited = tonumber(ARGV[10]), ARGV[11] == '1'
local mine = requests < 0
local rest, rest_strikes, rests = closed(KEYS[1], mine)
if rest > 0 then return answer(0, math.ceil(rest), rests, rest_strikes) end
local count, soonest, most, shut = #KEYS - 1, nil, 0, 1
local open = {}
for i = 1, count do
  local wait, strikes, why = closed(KEYS[i + 1], mine)
  most = math.max(most, strikes)
  if wait > 0 then
    soonest, shut = math.min(soonest or wait, wait), math.max(shut, why)
  else
    local f = redis.call('hmget', KEYS[i + 1], 'due', 'tokens_due', 'requests', 'tokens', 'sure', 'slow', 'slow_until',
      'tokens_slow', 'tokens_slow_until', 'used', 'line', 'hold', 'cooled')
    local one = {at = i, strikes = strikes, due = num(f[1]), tokens_due = num(f[2]), used = num(f[10]),
      line = num(f[11]), hold = num(f[12]), cooled = num(f[13])}
    local of_requests, of_tokens = num(f[3]), num(f[4])
    if of_requests == 0 then of_requests = tonumber(ARGV[10 + 2 * i]) end
    if of_tokens == 0 then of_tokens = tonumber(ARGV[11 + 2 * i]) end
    local half, early = 1, burst
    if f[5] ~= '1' then half, early = 2, 0 end
    one.limit, one.each, one.token, one.wait = of_requests, 0, 0, 0
    if of_requests > 0 then
      one.each = half * 60000 / (of_requests * share)
      if num(f[7]) > now then one.each = math.max(one.each, num(f[6])) end
      one.wait = math.max(0, one.due - early - now, one.hold - now)
    end
    if of_tokens > 0 then
      one.token = half * 60000 / (of_tokens * share)
      if num(f[9]) > now then one.token = math.max(one.token, num(f[8])) end
      one.wait = math.max(one.wait, one.tokens_due - early - now)
    end
    open[#open + 1] = one
  end
end
if #open == 0 then return answer(0, math.ceil(soonest or 1000), shut, most) end
if requests <= 0 then
  local one = open[1]
  if booked > 0 and one.cooled >= booked then return answer(0, 0, 1, one.strikes) end
  if booked > 0 and not waited and one.hold > now then
    redis.call('hset', KEYS[one.at + 1], 'hold', one.hold + one.each)
    return answer(0, math.ceil(one.hold - now), 2, one.strikes)
  end
  return answer(one.at, 0, one.strikes, 0)
end
local best = nil
if order == 'round_robin' and count > 1 then
  local turn = redis.call('hincrby', KEYS[1], 'turn', 1)
  redis.call('pexpire', KEYS[1], keep)
  table.sort(open, function(a, b) return (a.at - turn) % count < (b.at - turn) % count end)
elseif order == 'least_used' then
  table.sort(open, function(a, b) if a.used ~= b.used then return a.used < b.used end return a.at < b.at end)
end
for _, one in ipairs(open) do
  if one.at == preferred and one.wait == 0 then best = one break end
end
if not best then
  for _, one in ipairs(open) do
    if not best or one.wait < best.wait then best = one end
  end
end
local name = KEYS[best.at + 1]
if best.wait > patience then
  local line = math.max(best.line, best.due, best.tokens_due, now)
  redis.call('hset', name, 'line', line + math.max(best.each, 1))
  redis.call('pexpire', name, keep)
  return answer(0, math.ceil(math.max(500, line - now - patience)), 2, best.strikes)
end
if best.limit > 0 then requests = math.min(requests, math.max(1, math.floor(best.limit / 1200))) end
if best.strikes > 0 or rest_strikes > 0 or (best.token > 0 and best.limit == 0) then requests = 1 end
if best.each > 0 then redis.call('hset', name, 'due', math.max(best.due, now) + requests * best.each) end
if best.token > 0 and tokens > 0 then
  redis.call('hset', name, 'tokens_due', math.max(best.tokens_due, now) + tokens * best.token)
end
redis.call('hincrby', name, 'used', math.min(requests, 1000))
if best.strikes > 0 then redis.call('hset', name, 'probe', now + 15000) end
redis.call('pexpire', name, keep)
if rest_strikes > 0 then
  redis.call('hset', KEYS[1], 'probe', now + 60000)
  redis.call('pexpire', KEYS[1], keep)
end
return answer(best.at, math.ceil(best.wait), math.max(best.strikes, rest_strikes), requests)
"""
)

# What an answer told. KEYS: the provider, its key. ARGV: now, keep, whether it was a success, share, then limit, left
# (-1: not told), milliseconds to the reset (0: not told) of requests and of tokens, and by how many tokens it was more
# than had been booked. A success ends what was left alone, unless that is later than the call. Where nothing is left,
# and all of it is back in less than a bucket would take to fill, calls are counted in a window: none goes out before.
TELL: Final = (
    _COMMON
    + """
local share = tonumber(ARGV[4])
if ARGV[3] == '1' then
  for i = 1, 2 do
    local f = redis.call('hmget', KEYS[i], 'until', 'strikes')
    if num(f[2]) > 0 and num(f[1]) <= now then redis.call('hdel', KEYS[i], 'until', 'strikes', 'probe') end
  end
end
local name, touched = KEYS[2], false
for _, kind in ipairs({{'requests', 'due', 'slow', 5}, {'tokens', 'tokens_due', 'tokens_slow', 8}}) do
  local limit, left, reset = tonumber(ARGV[kind[4]]), tonumber(ARGV[kind[4] + 1]), tonumber(ARGV[kind[4] + 2])
  if limit > 0 then
    touched = true
    redis.call('hset', name, kind[1], limit, 'sure', 1)
    local each = 60000 / (limit * share)
    local window = left == 0 and kind[1] == 'requests' and reset < 54000
    if left == 0 then
      local free = now + each
      if window then
        free = math.max(free, now + reset)
        redis.call('hset', name, 'hold', math.max(num(redis.call('hget', name, 'hold')), now + reset))
      end
      redis.call('hset', name, kind[2], math.max(num(redis.call('hget', name, kind[2])), free))
    end
    local thin = left >= 0 and not window and math.min(reset / (left + 1), 10000) or 0
    if thin > each then
      redis.call('hset', name, kind[3], thin, kind[3] .. '_until', now + math.min(reset, 3 * thin))
    elseif left >= 0 then
      redis.call('hdel', name, kind[3], kind[3] .. '_until')
    end
  end
end
local f = redis.call('hmget', name, 'tokens', 'tokens_due')
local more = tonumber(ARGV[11])
if more ~= 0 and num(f[1]) > 0 then
  touched = true
  redis.call('hset', name, 'tokens_due', math.max(num(f[2]), now) + more * 60000 / (num(f[1]) * share))
end
if touched then
  redis.call('hsetnx', name, 'born', ARGV[1])
  redis.call('pexpire', name, keep)
end
return 1
"""
)

# Leave a key, or a provider, alone. KEYS: which. ARGV: now, keep, for how long as told (0: not told), else the first
# wait and the longest. Calls that were out together are one strike. What was booked does not stand, so that the next
# call is due when the rest is over.
COOL: Final = (
    _COMMON
    + """
local told, first, longest = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local f = redis.call('hmget', KEYS[1], 'until', 'strikes')
local till, strikes = num(f[1]), num(f[2])
if till <= now then
  strikes = strikes + 1
elseif told == 0 then
  return {math.ceil(till - now), strikes, memory(KEYS[1])}
end
local wait = told > 0 and told or math.min(first * 2 ^ (strikes - 1), longest)
till = math.max(till, now + wait)
redis.call('hset', KEYS[1], 'until', till, 'strikes', strikes, 'cooled', now)
local due = redis.call('hget', KEYS[1], 'due')
if num(due) > till then redis.call('hset', KEYS[1], 'due', till) end
redis.call('hsetnx', KEYS[1], 'born', ARGV[1])
redis.call('hdel', KEYS[1], 'probe')
redis.call('pexpire', KEYS[1], math.max(tonumber(keep), math.ceil(till - now) + 60000))
return {math.ceil(till - now), strikes, memory(KEYS[1])}
"""
)

# A probe that was booked will not go out. KEYS: its key, its provider.
RELEASE: Final = """
for i = 1, #KEYS do redis.call('hdel', KEYS[i], 'probe') end
return 1
"""
