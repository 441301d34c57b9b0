import express from 'express'
import { MysqlStore, rateLimit, SqliteStore } from 'express-sql-rate-limit'

const { DATABASE_URL, PORT = 3000 } = process.env
const store = DATABASE_URL
  ? new MysqlStore({ uri: DATABASE_URL })
  : new SqliteStore({ filename: 'limits.sqlite' })

const app = express()
app.use(rateLimit({ store, name: 'global', limit: 100, windowSeconds: 60 }))
app.post('/export', rateLimit({ store, name: 'export', limit: 3, windowSeconds: 3600 }), (req, res) => {
  res.json({ started: true, left: req.rateLimit?.remaining })
})
app.listen(Number(PORT))
