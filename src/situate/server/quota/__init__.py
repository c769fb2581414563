"""ResourceQuotas: what objects use, and the account that each quota's status keeps of it.

usage       pure: what one object uses, by the resource names of quotas
scopes      pure: which quotas an object counts in
charging    adds the change of a quota's account to the transaction of every write in its namespace, or refuses it
settling    counts everything again: for a new or changed quota, after a restart, and now and then
"""
