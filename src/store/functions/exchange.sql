-- Executes the items of one replica: what it used, keeps and needs of each workspace, and the settlements of its
-- requests (src/admission/escrow/exchange.ts has the meaning of an item). Repeating an item changes nothing.
-- w: on a distributed schema the workspace, which all items then have. live: number of replicas that run.
-- items: [{"workspace", "seq", "grant", "after", "minute", "credit", "running", "requests", "input", "output", "held",
-- "running_now", "used_requests", "used_input", "asks", "posts", "freed", "spare", "close", "subjects"?}], where
-- running, requests, input and output are null without a limit. asks: [{"requestId", "hold", "input", "key"?, "body"?,
-- "subjects"?}].
-- posts: rows of `generations` without the workspace, where credits_micro is the charge; with "key", "body" and
-- "response" in base64 for an idempotency key, and "admitted_by" when their grant may have ended. freed:
-- [{"request_id", "key"?}]. spare: {"n", "credit", "input", "output"}. subjects: what the replica says of headroom of
-- subjects, and wants of it; see report_subjects() and grant_subjects().
-- at: the current time; tests set it.
-- Returns {workspace: reply}; no reply for an item that is older than the last one.
-- Its settings make every statement find its rows by primary key. Statistics of tables that are empty at one time and
-- full at another could lead to a plan with a sequential scan, which a connection would then keep. A workspace that
-- another transaction locks must not hold up the others for long.
create or replace function exchange(w text, by_replica text, live int, items jsonb, at timestamptz default null)
returns jsonb language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '1s' as $$
declare
  i record;
  result record;
  a accounts%rowtype;
  p periods%rowtype;
  g grants%rowtype;
  workspaces text[];
  posted text[];                                  -- workspaces whose posts are posted with one statement
  charges jsonb;
  reply jsonb;
  replies jsonb := '{}';
begin
  if not jsonb_path_exists(items, '$[*].posts[*]') then
    -- A grant need not survive a crash of the server: without it, the settlements of its requests are refused.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  workspaces := array(select workspace from jsonb_to_recordset(items) as i (workspace text));
  -- In one order, so that two replicas do not wait for each other.
  perform from accounts where workspace_id = any (workspaces) order by workspace_id for update;
  -- Reads the clock after the lock, so that the times of a workspace never decrease.
  at := coalesce(at, clock_timestamp());
  posted := log_posts(by_replica, items);
  if exists (select from settlement_log where workspace_id = any (workspaces)) then
    perform post_settlements(workspaces, at);
  end if;
  for i in select * from jsonb_to_recordset(items) as i (workspace text, seq bigint, "grant" bigint, after bigint,
      minute bigint, credit bigint, running bigint, requests bigint, input bigint, output bigint, held bigint,
      running_now bigint, used_requests bigint, used_input bigint, asks jsonb, posts jsonb, freed jsonb, spare jsonb,
      close boolean, subjects jsonb)
      order by workspace loop
    if jsonb_path_exists(i.posts, '$[*].admitted_by') then
      -- What their replicas append to the log meanwhile is posted first.
      perform from grants where workspace_id = i.workspace for update;
      perform post_settlements(array[i.workspace], at);
    end if;
    select * into a from accounts where workspace_id = i.workspace;
    select * into g from grants where workspace_id = i.workspace and replica = by_replica;
    continue when g.seq > i.seq;
    if g.seq = i.seq then
      replies := replies || jsonb_build_object(i.workspace, g.reply);
      continue;
    end if;
    p := periods_at(i.workspace, at);
    if a.workspace_id is null then
      reply := jsonb_build_object('state', 'done', 'grant', 0,
        'verdicts', (select coalesce(jsonb_agg('{"refusal": {"refusal": "unauthenticated"}}'::jsonb), '[]')
          from jsonb_array_elements(i.asks)),
        'charges', (select coalesce(jsonb_object_agg(post ->> 'request_id', '0'), '{}')
          from jsonb_array_elements(i.posts) post),
        'extra', '{"credit": 0, "running": 0, "requests": 0, "input": 0, "output": 0}'::jsonb,
        'minute', 0, 'msLeft', 0, 'isOver', false);
    elsif i."grant" <> 0 and (i."grant" is distinct from g.id or i.after not in (0, g.seq))
        and not (i.close and is_posted(i.workspace, i.posts)) then
      reply := '{"state": "ended"}';
    elsif greatest(i.requests, i.input, i.output) > 0
        and i.minute <> extract(epoch from date_trunc('minute', p.at, 'UTC')) * 1000 then
      reply := '{"state": "again"}';
    else
      if g.id is not null and i."grant" = 0 then
        -- No request runs under a grant that the replica does not know, and none uses an idempotency key under it.
        delete from subject_holds h where h.workspace_id = i.workspace and h.grant_id = g.id;
        delete from subject_grants s where s.workspace_id = i.workspace and s.grant_id = g.id;
        delete from grants where workspace_id = i.workspace and replica = by_replica;
        g := null;
      end if;
      charges := '{}';
      if i.posts <> '[]' and not i.workspace = any (posted) then
        charges := settle_posts(a, p, i.posts, by_replica);
        select * into a from accounts where workspace_id = i.workspace;
        p := periods_at(i.workspace, at);
      end if;
      if g.id is not null then
        for u in 1..case when i.used_requests > 0 then 4 else 0 end loop
          continue when g.at < date_trunc((array['minute', 'day', 'week', 'month'])[u], p.at, 'UTC');
          p.requests[u] := p.requests[u] + i.used_requests;
          p.input_tokens[u] := p.input_tokens[u] + i.used_input;
        end loop;
      end if;
      if jsonb_path_exists(i.posts, '$[*].key') then
        perform keep_responses(i.workspace, i.posts);
      end if;
      if i.freed <> '[]' then
        perform keep_responses(i.workspace, i.freed);
        delete from subject_holds h where h.workspace_id = i.workspace
          and h.request_id in (select freed ->> 'request_id' from jsonb_array_elements(i.freed) freed);
      end if;
      -- What the item keeps replaces the grant.
      g.workspace_id := i.workspace;  g.replica := by_replica;  g.seq := i.seq;  g.at := p.at;
      g.id := coalesce(g.id, nextval('grant_id'));  g.opened_at := p.at;
      g.credit_micro := i.credit + i.held;
      g.held_micro := i.held;
      if i.subjects is not null then
        perform report_subjects(i.workspace, g.id, i.subjects, p.at);
      end if;
      g.running := i.running_now + case when a.limits ? 'concurrent_requests' then coalesce(i.running, 0) else 0 end;
      g.running_now := i.running_now;
      g.requests := coalesce(i.requests, 0);
      g.input_tokens := coalesce(i.input, 0);
      g.output_tokens := coalesce(i.output, 0);
      if i.asks = '[]' and i.spare @> '{"n": 0}' and i.credit = 0 and i.running = 0 and i.requests = 0
          and i.input = 0 and i.output = 0 then
        -- Nothing is reserved beyond what requests hold.
        g.reply := jsonb_build_object('state', 'done', 'grant', g.id, 'verdicts', '[]'::jsonb, 'charges', charges,
          'extra', '{"credit": 0, "running": 0, "requests": 0, "input": 0, "output": 0}'::jsonb,
          'minute', (extract(epoch from date_trunc('minute', p.at, 'UTC')) * 1000)::bigint,
          'msLeft', ms_left_in_period('minute', p.at, p.clock), 'isOver', false);
      else
        if jsonb_path_exists(i.asks, '$[*].subjects') then
          -- What requests hold of caps counts while their grant exists, so it has to exist for the second of them.
          g.reply := coalesce(g.reply, '{}');
          insert into grants values (g.*) on conflict do nothing;
        end if;
        select * into result from reserve(a, p, g, i.asks, i.spare, live, charges);
        g := result.g;  p := result.p;
      end if;
      if jsonb_path_exists(i.subjects, '$[*].n') then
        g.reply := g.reply || jsonb_build_object('subjects', grant_subjects(p, g.id, live, i.subjects));
      end if;
      reply := g.reply;
      if i.close and g.credit_micro = 0 and g.running = 0 then
        delete from subject_grants s where s.workspace_id = i.workspace and s.grant_id = g.id;
        delete from grants where workspace_id = i.workspace and replica = by_replica;
      else
        update grants set seq = g.seq, at = g.at, credit_micro = g.credit_micro, held_micro = g.held_micro,
            running = g.running, running_now = g.running_now, requests = g.requests, input_tokens = g.input_tokens,
            output_tokens = g.output_tokens, reply = g.reply
          where workspace_id = i.workspace and replica = by_replica;
        if not found then
          insert into grants values (g.*);
        end if;
      end if;
      if i.used_requests > 0 or i.asks <> '[]' or not i.workspace = any (posted) then
        update periods set at = p.at, requests = p.requests, input_tokens = p.input_tokens,
            output_tokens = p.output_tokens, spent_micro = p.spent_micro, clock = p.clock
          where workspace_id = i.workspace;
        if not found then
          insert into periods values (p.*);
        end if;
      end if;
    end if;
    replies := replies || jsonb_build_object(i.workspace, reply);
  end loop;
  return replies;
end $$;
